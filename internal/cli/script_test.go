//go:build !race

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"memorymark/internal/snapshot"
	"memorymark/internal/testmachine"
	"memorymark/internal/trace"
)

// The scripts run the command line as a user does. They find recordings in
// $TRUTH, small snapshots, made below, in their folder, and a Python with
// PyTorch in $PYTORCH if "make test" set one up (condition pytorch).
func TestScripts(t *testing.T) {
	truth, err := filepath.Abs("../../testdata/truth")
	if err != nil {
		t.Fatal(err)
	}
	python, cache := "", t.TempDir()
	if os.Getenv("MEMORYMARK_TEST_PYTHON") != "" {
		python = testmachine.ForkingPython(t)
	}
	hub := fakeHub(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Condition: func(name string) (bool, error) {
			if name != "pytorch" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return python != "", nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("TRUTH", truth)
			e.Setenv("PYTORCH", python)
			e.Setenv("HF_ENDPOINT", hub)
			e.Setenv("HF_HOME", filepath.Join(e.WorkDir, "huggingface"))
			e.Setenv("XDG_CACHE_HOME", cache) // the library that emulates cards is compiled once
			return writeSmallSnapshots(e.WorkDir)
		},
	})
}

// fakeHub is a server with one small model, which needs a token, and an adapter of it.
func fakeHub(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Repo-Commit", "b968826d9c46dd6066d109eabc6255188de91218")
		switch {
		case strings.HasPrefix(r.URL.Path, "/acme/tiny/") && r.Header.Get("Authorization") != "Bearer hf_test":
			w.Header().Set("X-Error-Code", "GatedRepo")
			http.Error(w, "", http.StatusUnauthorized)
		case r.URL.Path == "/acme/tiny/resolve/main/config.json":
			_, _ = io.WriteString(w, `{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512, "vocab_size": 1000}`)
		case r.URL.Path == "/acme/tiny-lora/resolve/main/adapter_config.json":
			_, _ = io.WriteString(w, `{"peft_type": "LORA", "r": 8, "base_model_name_or_path": "acme/tiny"}`)
		default:
			w.Header().Set("X-Error-Code", "EntryNotFound")
			http.Error(w, "", http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// exits is a command of scripts, "exits 2 memorymark frobnicate": it runs a
// command and fails if it exits with another code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exited with %d, want %d", got, want)
	}
}

// writeSmallSnapshots writes snapshots of what recordings rarely show.
func writeSmallSnapshots(dir string) error {
	tables := trace.NewTables()
	small := func(device, events int) *trace.Trace {
		t := trace.New(device, tables)
		for i := range events {
			addr := uint64(i+1) << 20
			t.Events = append(t.Events, trace.Event{Action: trace.Alloc, Addr: addr, Size: int64(512 * (i + 1)), Time: int64(1_700_000_000_000_000 + i)})
			t.Final = append(t.Final, trace.Segment{Addr: addr, Size: 1 << 20, Small: true, Blocks: []trace.Block{
				{Addr: addr, Size: 1 << 20, Requested: int64(512 * (i + 1)), State: trace.Allocated},
			}})
		}
		t.Link()
		return t
	}
	for name, devices := range map[string][]*trace.Trace{
		"empty.pickle":     {trace.New(0, tables)},
		"no_stacks.pickle": {small(0, 3)},
		"two_gpus.pickle":  {small(0, 1), trace.New(1, tables), small(2, 2)},
	} {
		var b bytes.Buffer
		if err := snapshot.Write(&b, &snapshot.Snapshot{Devices: devices}); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			return err
		}
		if name == "no_stacks.pickle" {
			if err := os.WriteFile(filepath.Join(dir, "truncated.pickle"), b.Bytes()[:b.Len()/2], 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
