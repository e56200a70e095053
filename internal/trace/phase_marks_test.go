package trace

import (
	"fmt"
	"strings"
	"testing"
)

func TestPhaseMarks(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{
			"passes are told from stacks, beside the optimizer's marks", `
			alloc weight 400 init
			alloc hidden 64 forward
			alloc loss 4 loop
			free loss engine
			alloc dw 400 engine
			begin Optimizer.step#Adam.step
			free hidden step
			end Optimizer.step#Adam.step
			alloc hidden2 64 forward`,
			"1 forward, 2 /forward, 3 backward, 6 /backward, 6 Optimizer.step#Adam.step, 8 /Optimizer.step#Adam.step, 8 forward, 9 /forward",
		},
		{
			"a mark around nothing stays whole", `
			alloc hidden 64 forward
			begin empty
			end empty
			alloc dw 400 engine`,
			"0 forward, 1 /forward, 1 empty, 1 /empty, 1 backward, 2 /backward",
		},
		{
			"a recomputation is part of backward", `
			alloc dw 400 engine
			alloc hidden 64 again
			free hidden engine`,
			"0 backward, 4 /backward",
		},
		{
			"a program that says where its passes are is believed", `
			begin forward
			alloc hidden 64 loop
			end forward
			alloc dw 400 engine`,
			"0 forward, 1 /forward",
		},
		{"without stacks nothing is known", `
			alloc a 8 engine
			free a engine`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, m := range parseScript(t, test.script).PhaseMarks() {
				name := m.Name
				if m.End {
					name = "/" + name
				}
				got = append(got, fmt.Sprintf("%d %s", m.Event, name))
			}
			if joined := strings.Join(got, ", "); joined != test.want {
				t.Errorf("got  %s\nwant %s", joined, test.want)
			}
		})
	}
}
