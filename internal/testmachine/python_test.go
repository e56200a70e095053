package testmachine_test

import (
	"os/exec"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// TestPython fails where the interpreter that was named is of no use, so that the
// reason is not looked for in the prober.
func TestPython(t *testing.T) {
	out, err := exec.Command(testmachine.Python(t), "-c", "import torch, transformers").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A forked program has the arguments, the environment, the folder, the files and the end
// of one that was started, and PyTorch from the first line on.
func TestForkingPython(t *testing.T) {
	python := testmachine.ForkingPython(t)
	for program, want := range map[string]string{
		"import sys, os; print('torch' in sys.modules, sys.argv[1:], os.environ['ASKED'], os.getcwd(), sys.stdin.read())": "True ['a', 'b'] yes / read\n",
		"import sys; sys.exit(7)":                    "exit status 7",
		"import os, signal; os.kill(os.getpid(), 9)": "signal: killed",
		"raise ValueError('mine')":                   "ValueError: mine\nexit status 1",
	} {
		c := exec.Command(python, "-u", "-c", program+" # memorymark_prober", "a", "b")
		c.Env, c.Dir, c.Stdin = append(c.Environ(), "ASKED=yes"), "/", strings.NewReader("read")
		out, err := c.CombinedOutput()
		got := string(out)
		if err != nil {
			got += err.Error()
		}
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}
