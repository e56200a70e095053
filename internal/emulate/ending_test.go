package emulate

import (
	"os"
	"path/filepath"
	"testing"

	"memorymark/internal/testmachine"
	"memorymark/internal/workload/workloadtest"
)

// What processes left is found whatever the temporary folder is called.
func TestSummaryInAnyFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a[b]*?")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	testmachine.WriteFile(t, filepath.Join(folder, "1.json"), `{"pid": 1, "devices": [{"reserved": 2097152}]}`)
	card := workloadtest.Card(t, "t4")
	sum, err := summarize(Settings{Card: card, Folder: folder}, &ending{pid: 1})
	if err != nil || len(sum.Processes) != 1 || sum.Fits == nil {
		t.Errorf("%+v, %v", sum, err)
	}
}

// TestFits has every way in which a process of a command can end.
func TestFits(t *testing.T) {
	yes, no := true, false
	raised := &Failure{Exception: "ValueError"}
	for _, test := range []struct {
		name  string
		steps int64
		ooms  []OOM
		said  *Failure // by the process at its end
		other bool     // it is not the command itself
		code  int      // of the command
		runs  bool     // it was never at its end
		told  bool     // to end
		want  *bool
		text  string
	}{
		{name: "ended well", steps: 3, want: &yes},
		{name: "raised", steps: 3, said: raised, code: 1, text: "ended with ValueError"},
		{name: "left with a code", steps: 3, code: 3, text: "ended with exit code 3"},
		{name: "killed", steps: 3, code: 137, runs: true, text: "killed by SIGKILL"},
		{name: "killed below a shell", steps: 3, code: 143, runs: true, other: true, text: "killed by SIGTERM"},
		{name: "killed, and nobody minded", steps: 3, runs: true, other: true, text: "killed, or crashed"},
		{name: "replaced by another program", steps: 3, runs: true, want: &yes},
		{name: "showed an error to a debugger", steps: 3, said: raised, want: &yes},
		{name: "ended well below what failed", steps: 3, other: true, code: 2},
		{name: "out of memory", steps: 1, ooms: []OOM{{Step: 2}}, said: raised, code: 1, want: &no, text: "ended with ValueError"},
		{name: "caught it and trained on", steps: 2, ooms: []OOM{{Step: 1}, {Step: 2}}, want: &yes},
		{name: "caught it and failed later", steps: 2, ooms: []OOM{{Step: 2}}, said: raised, code: 1, text: "ended with ValueError"},
		{name: "interrupted", steps: 3, said: &Failure{Exception: "KeyboardInterrupt", Where: "x.py:6"}, code: 130, told: true, text: "interrupted at x.py:6"},
		{name: "interrupted, and killed as it went on", steps: 3, code: 137, runs: true, told: true, text: "interrupted"},
		{name: "interrupted, and ended well", steps: 3, told: true, text: "interrupted"},
		{name: "interrupted as it tried again", steps: 1, ooms: []OOM{{Step: 2}}, code: 130, told: true, text: "interrupted"},
		{name: "caught it and ended", steps: 1, ooms: []OOM{{Step: 2}}},
	} {
		p := &Process{PID: 7, Steps: test.steps, OOMs: test.ooms, Failure: test.said}
		end := &ending{pid: 7, code: test.code, interrupted: test.told}
		if test.other {
			end.pid = 8
		}
		end.conclude(p, test.runs)
		got := p.fits(end.failure())
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%s: fits is %v, want %v", test.name, got, test.want)
		}
		text := ""
		if p.Failure != nil {
			text = p.Failure.String()
		}
		if text != test.text {
			t.Errorf("%s: %q, want %q", test.name, text, test.text)
		}
	}
}
