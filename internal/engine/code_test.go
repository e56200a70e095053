package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/sandbox"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
)

func TestMain(m *testing.M) {
	sandbox.Enter()
	os.Exit(m.Run())
}

// patience is after how long a test that waits has failed.
const patience = 5 * time.Minute

const ownModel = `import torch

def make():
    %s
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 4096), torch.nn.Linear(4096, 4096))
    return model, lambda n: torch.zeros(n, 128, dtype=torch.long)
`

// tries lists what code could do to a worker.
const tries = `import os, socket
    for what, act in {
        "connect": lambda: socket.create_connection(%q.rsplit(":", 1), 5),
        "read the token's file": lambda: open(%q).read(),
        "read the token": lambda: os.environ["MEMORYMARK_TOKEN"],
        "read its parent's environment": lambda: [p for p in os.listdir("/proc") if p.isdigit() and b"mm_secret" in open(f"/proc/{p}/environ", "rb").read()][0],
        "write": lambda: open(os.path.abspath(__file__), "w"),
    }.items():
        try:
            act()
        except (OSError, KeyError, IndexError):
            continue
        raise ValueError("it can " + what)
    raise ValueError("it can do nothing")`

// codeOrder is an order that carries code, as a worker gets it.
func codeOrder(t *testing.T, code Code) json.RawMessage {
	t.Helper()
	w, err := workload.Draft{}.WithoutModel()
	if err != nil {
		t.Fatal(err)
	}
	r := requestOn(t, "t4", `{"model": "bert"}`)
	r.Workload, r.MultipleOf = w, 512 // a short search
	o, err := NewOrder(r, evidence.Emulated)
	if err != nil {
		t.Fatal(err)
	}
	o.Code = &code
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCode has a worker answer orders that carry code, with code that tries what
// it should not.
func TestCode(t *testing.T) {
	python := testmachine.Python(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("NOT TESTED: it needs a C compiler")
	}
	needSandbox(t, python)
	t.Setenv("TMPDIR", t.TempDir()) // where others leave nothing, either
	token := filepath.Join(t.TempDir(), "token")
	testmachine.WriteFile(t, token, "mm_secret")
	t.Setenv("MEMORYMARK_TOKEN", "mm_secret")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, c := range map[string]struct {
		does, fails string
		timeout     time.Duration
	}{
		"trains":           {"import helper; helper.fine()", "", patience},
		"attacks":          {fmt.Sprintf(tries, l.Addr(), token), "ValueError: it can do nothing", patience},
		"takes all memory": {"x = [bytearray(1 << 28) for _ in range(1000)]", "it held more than 2 GiB of the machine's own memory", patience},
		"hides":            {"import os, time\n    if os.fork(): os._exit(0)\n    os.setsid()\n    time.sleep(1000)", "ended with status 0 without an answer and left others running", patience},
		"never returns":    {"import time; time.sleep(1000)", "took too long and was killed", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			code := Code{Files: map[string]string{"train.py": fmt.Sprintf(ownModel, c.does), "helper.py": "def fine(): pass\n"}, File: "train.py", Function: "make"}
			ctx, stop := context.WithTimeout(t.Context(), 2*patience)
			defer stop()
			r := NewRunner(RunnerOptions{Python: python, Timeout: c.timeout, CodeMemory: 2 << 30})
			result, err := r.RunOrder(ctx, codeOrder(t, code), func(json.RawMessage) {})
			switch {
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("it ended with %v, want %q", err, c.fails)
			case c.fails == "":
				var a analysis.Answer
				if err := errors.Join(err, json.Unmarshal(result, &a)); err != nil || a.OptimalBatch == 0 || a.Engine != evidence.Emulated {
					t.Errorf("%+v, %v", a, err)
				}
				if strings.Contains(string(result), os.TempDir()) {
					t.Errorf("the answer names folders of the worker: %s", result)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "memorymark-code-*")); len(left) > 0 {
				t.Errorf("it left %q", left)
			}
		})
	}
}

// TestCodeNotAllowed gives orders with code to workers that were not started for
// them, and code that is none.
func TestCodeNotAllowed(t *testing.T) {
	fine := Code{Files: map[string]string{"train.py": ""}, File: "train.py", Function: "make"}
	_, err := NewRunner(RunnerOptions{}).RunOrder(t.Context(), codeOrder(t, fine), func(json.RawMessage) {})
	if err == nil || !strings.Contains(err.Error(), "start one with --allow-code") {
		t.Errorf("it ended with %v", err)
	}
	for name, c := range map[string]struct {
		code Code
		want string
	}{
		"a path":      {Code{Files: map[string]string{"../train.py": ""}, File: "../train.py", Function: "make"}, "without a folder"},
		"other files": {Code{Files: map[string]string{"sitecustomize.pth": ""}}, "must be the name of a Python file"},
		"no file":     {Code{Files: fine.Files, File: "model.py", Function: "make"}, "not among files"},
		"no function": {Code{Files: fine.Files, File: "train.py", Function: "make()"}, "name of a function"},
		"too large":   {Code{Files: map[string]string{"train.py": strings.Repeat("#", maxCodeBytes+1)}, File: "train.py", Function: "make"}, "at most"},
	} {
		if err := c.code.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	measured := strings.Replace(string(codeOrder(t, fine)), `"engine":"emulated"`, `"engine":"measured"`, 1)
	if _, err := ParseOrder([]byte(measured)); err == nil {
		t.Error("code is measured")
	}
}

// needSandbox skips a test where this system has no sandboxes; package sandbox tests
// that they confine.
func needSandbox(t *testing.T, python string) {
	t.Helper()
	box, err := measure.NewConfinement(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Remove() }()
	var unsupported *sandbox.UnsupportedError
	if err := box.Check(t.Context(), measure.Python{Path: python}); errors.As(err, &unsupported) {
		t.Skipf("NOT TESTED: %v", err)
	}
}
