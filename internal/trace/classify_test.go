package trace

import (
	"strings"
	"testing"
)

// In these scripts "=activation" says what a line must be found to be for.
func TestClassify(t *testing.T) {
	tests := []struct{ name, script string }{
		{"a whole step", `
			alloc weight 400 init =parameter
			alloc scratch 8 init =temporary
			free scratch init
			alloc batch 32 batch =input
			alloc hidden 64 forward =activation
			alloc tmp 16 forward =temporary
			free tmp forward
			alloc loss 4 loop =activation
			alloc seed 4 grads =temporary
			free loss engine
			alloc dx 64 engine =temporary
			free hidden engine
			alloc dw 400 engine =gradient
			free dx engine
			free seed grads
			begin Optimizer.step#Adam.step
			alloc m 400 state =optimizer_state
			alloc v 400 state =optimizer_state
			alloc sqrt 400 step =temporary
			free sqrt step
			end Optimizer.step#Adam.step
			begin Optimizer.zero_grad#Adam.zero_grad
			free dw zero
			end Optimizer.zero_grad#Adam.zero_grad`},
		{"marks are not needed", `
			alloc dw 400 engine =gradient
			alloc m 400 state =optimizer_state
			alloc sqrt 400 step =temporary
			free sqrt step
			free dw zero`},
		{"a checkpoint runs forward again", `
			alloc kept 8 forward =activation
			alloc hidden 64 again =activation
			alloc tmp 16 again =temporary
			free tmp again
			alloc dw 400 engine =gradient
			free hidden engine
			free kept engine
			free dw zero`},
		{"a backward written in Python", `
			alloc h 8 forward =activation
			alloc dh 8 python =temporary
			alloc dw 8 python =gradient
			free dh engine
			free h engine
			alloc tmp 8 step =temporary
			free tmp step`},
		{"cuBLAS keeps its workspaces", `
			alloc ws 33554432 forward =workspace
			alloc lt 1048576 forward =workspace
			alloc h 1048576 forward =activation
			alloc ws2 33554432 engine =workspace
			free h engine
			alloc tmp 8 step =temporary
			free tmp step`},
		{"a recording that stops in forward", `
			alloc h 1048576 forward =activation
			alloc x 8 forward =activation`},
		{"out of memory in forward", `
			alloc h 64 forward =activation
			oom 4096 forward
			free h forward`},
		{"out of memory in backward", `
			alloc h 64 forward =activation
			alloc dw 400 engine =gradient
			alloc dx 64 engine =temporary
			oom 4096 engine
			free dx engine
			free h loop
			free dw zero`},
		{"out of memory in a step", `
			alloc m 400 state =optimizer_state
			alloc sqrt 400 step =temporary
			oom 4096 step
			free sqrt loop`},
		{"momentum of before the recording", `
			before w 400 =parameter
			before m 400 =optimizer_state
			before ws 33554432 =workspace
			alloc h 8 forward =activation
			alloc dw 400 engine =gradient
			free h engine
			alloc tmp 400 step =temporary
			free tmp step
			free dw zero`},
		{"Adam's first step is in the recording", `
			before w1 400 =parameter
			before w2 400 =parameter
			alloc h 8 forward =activation
			alloc dw1 400 engine =gradient
			free h engine
			alloc m 400 state =optimizer_state
			alloc v 400 state =optimizer_state
			free dw1 zero`},
		{"stacks tell what was live before", `
			before v 400 state =optimizer_state
			before m 400 state =optimizer_state
			before w 400 init =parameter
			before big 33554432 init =parameter
			before fw 33554432 forward =workspace
			before bw 33554432 =workspace
			before x 400 batch =input
			alloc h 8 forward =activation
			alloc dbig 33554432 engine =gradient
			alloc dw 400 engine =gradient
			free h engine
			free dw zero
			free dbig zero`},
		{"the ring buffer has lost the model and kept the state", `
			before w 400 =parameter
			before m 400 state =optimizer_state
			before v 400 state =optimizer_state
			alloc h 8 forward =activation
			alloc dw 400 engine =gradient
			free h engine
			free dw zero`},
		{"inference whose warm-up had stacks", `
			before w 33554432 init =parameter
			before ws 33554432 forward =workspace
			before x 32 batch =input
			alloc h 8 forward =temporary
			free h forward`},
		{"inference", `
			before w 400 =parameter
			before big 33554432 =unknown
			alloc h 8 forward =temporary
			alloc y 8 forward =activation
			free h forward
			free y loop`},
		{"a recording that begins after backward", `
			before w 400 =parameter
			before m 400 =optimizer_state
			before g 400 =gradient
			before ws 33554432 =workspace
			alloc tmp 8 step =temporary
			free tmp step
			free g zero`},
		{"no training at all", "alloc a 8 loop =unknown\nfree a loop"},
		{"nothing recorded", "before w 400 =unknown"},
		{"no stacks at all", `
			before w 400 =unknown
			before g 8 =gradient
			alloc h 64 =unknown
			alloc dw 400 =gradient
			begin Optimizer.step#SGD.step
			alloc m 400 =optimizer_state
			end Optimizer.step#SGD.step
			begin Optimizer.zero_grad#SGD.zero_grad
			free dw
			free g
			end Optimizer.zero_grad#SGD.zero_grad
			free w`},
		{"nothing", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			script, names, want := expectations(test.script)
			tr := parseScript(t, script)
			lifetimes := tr.Lifetimes()
			tr.Classify(lifetimes)
			for i, name := range names {
				if got := strings.ReplaceAll(lifetimes[i].For.String(), " ", "_"); got != want[i] {
					t.Errorf("%s is classified %s, want %s", name, got, want[i])
				}
			}
		})
	}
}

// expectations removes the last column of a script and returns it by ID:
// initial allocations come before recorded ones.
func expectations(script string) (rest string, names, want []string) {
	var b strings.Builder
	for _, kind := range []string{"before", "alloc"} {
		for line := range strings.Lines(script) {
			line, category, ok := strings.Cut(line, "=")
			if ok && strings.HasPrefix(strings.TrimSpace(line), kind) {
				names = append(names, strings.Fields(line)[1])
				want = append(want, strings.TrimSpace(category))
			}
			if kind == "alloc" {
				b.WriteString(strings.TrimSpace(line) + "\n")
			}
		}
	}
	return b.String(), names, want
}

// What a prediction knows is not inferred again.
func TestClassifyKeepsWhatIsKnown(t *testing.T) {
	tr := parseScript(t, "alloc a 8 forward\nfree a forward")
	tr.Events[0].For = Workspace
	lifetimes := tr.Lifetimes()
	tr.Classify(lifetimes)
	if got := lifetimes[0].For; got != Workspace {
		t.Errorf("the category became %s", got)
	}
}
