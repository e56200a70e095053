package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"memorymark/internal/sandbox"
	"memorymark/internal/snapshot"
	"memorymark/internal/trace"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

func TestMain(m *testing.M) {
	sandbox.Enter() // which testscript would not know
	testscript.Main(m, map[string]func(){
		"memorymark": func() {
			os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// The scripts run the command line as a user does. They find recordings in
// $TRUTH, small snapshots, made below, in their folder, and a Python with
// PyTorch in $PYTORCH if "make test" set one up (condition pytorch).
func TestScripts(t *testing.T) {
	truth, err := filepath.Abs("../../testdata/truth")
	if err != nil {
		t.Fatal(err)
	}
	python := os.Getenv("MEMORYMARK_TEST_PYTHON")
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
			return writeSmallSnapshots(e.WorkDir)
		},
	})
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

// Every command has its help in a golden file and an example in its help.
func TestHelpIsGolden(t *testing.T) {
	script, err := os.ReadFile("testdata/script/help.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if line := fmt.Sprintf("exec %s --help\n", c.CommandPath()); !strings.Contains(string(script), line) {
			t.Errorf("testdata/script/help.txtar lacks %q", line)
		}
		if !c.HasExample() {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				visit(sub)
			}
		}
	}
	visit(newRoot(&env{}))
}

// A command that was interrupted says so, and only that.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := Run(ctx, []string{"snapshot", "info", "-"}, strings.NewReader("x"), &stdout, &stderr)
	if code != exitInterrupted || stdout.Len() > 0 || stderr.String() != "memorymark: interrupted\n" {
		t.Errorf("code %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}

func TestProgressBar(t *testing.T) {
	var out bytes.Buffer
	p := &progress{Reader: strings.NewReader("12345678"), ctx: t.Context(), w: &out, label: "reading x", total: 16}
	if _, err := p.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	p.clear()
	want := "\rreading x  [############............]  50 %  8 B of 16 B\x1b[K\r\x1b[K"
	if got := out.String(); got != want {
		t.Errorf("drew %q, want %q", got, want)
	}
}

func TestExitCodesAreDocumented(t *testing.T) {
	codes := []int{exitOK, exitNo, exitUsage, exitFailure, exitInterrupted, exitTerminated}
	for _, c := range codes {
		if !slices.ContainsFunc(exitCodes, func(e exitMeaning) bool { return e.code == c }) {
			t.Errorf("exit code %d is not in the table", c)
		}
	}
}
