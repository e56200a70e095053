package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"memorymark/internal/sandbox"
	"memorymark/internal/testmachine"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

// tellStart is set where a test waits for a command to begin, which takes seconds on a busy
// machine: it closes its file 3.
const tellStart = "MEMORYMARK_TEST_TELL_START"

func TestMain(m *testing.M) {
	sandbox.Enter() // which testscript would not know
	testscript.Main(m, map[string]func(){
		"memorymark": func() {
			if os.Getenv(tellStart) != "" {
				_ = os.NewFile(3, "start").Close()
			}
			os.Exit(Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

// Every command has its help in a golden file and an example in its help.
func TestHelpIsGolden(t *testing.T) {
	script := testmachine.ReadFile(t, "testdata/script/help.txtar")
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

// isAnswer reports whether an exit code says yes or no: what is recorded ran out of
// memory, and that is an answer, too.
func isAnswer(code int) bool { return slices.Contains([]int{exitOK, exitNo, exitOutOfMemory}, code) }
