package emulate

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// writtenPipe is a pipe to which something was written, and no process writes more.
func writtenPipe(t *testing.T, data string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, err := w.WriteString(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

// writtenFile is a file that was read up to an offset.
func writtenFile(t *testing.T, data string, offset int64) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	testmachine.WriteFile(t, path, data)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRewinding has a command read its standard input, or not.
func TestRewinding(t *testing.T) {
	read := func(r io.Reader) {
		if _, err := io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	unread, drained, empty := writtenPipe(t, "x"), writtenPipe(t, "x"), writtenPipe(t, "")
	untouched, exhausted, nothing := rewinding(unread), rewinding(drained), rewinding(empty)
	read(drained)
	read(empty)
	if a, b := untouched(), nothing(); a != "" || b != "" {
		t.Errorf("nothing was read, but %q, %q", a, b)
	}
	if exhausted() == "" {
		t.Error("a pipe that was read can be read again")
	}

	f := writtenFile(t, "head data", 5)
	back := rewinding(f)
	read(f)
	if obstacle := back(); obstacle != "" {
		t.Error(obstacle)
	}
	if again, err := io.ReadAll(f); err != nil || string(again) != "data" {
		t.Errorf("the second run reads %q, %v", again, err)
	}
	if obstacle := rewinding(nil)(); obstacle != "" {
		t.Errorf("no input: %q", obstacle)
	}
}

// TestAutoReadsInputAgain runs a program again whose sizes follow from its standard
// input, if it can be read again.
func TestAutoReadsInputAgain(t *testing.T) {
	const program = `import sys, torch
n = len(sys.stdin.read())
x = torch.randn(n, n, device="cuda")
print("read", n, len(x[x > 0]))`
	input := strings.Repeat("x", 300)
	out, sum := runReading(t, Auto, writtenFile(t, input, 0), "-c", program)
	if strings.Count(out, "read 300 ") != 2 || sum.Processes[0].Values != Computed {
		t.Errorf("a file: %+v\n%s", sum, out)
	}
	out, sum = runReading(t, Auto, writtenPipe(t, input), "-c", program)
	if p := sum.Processes[0]; strings.Count(out, "read ") != 1 || p.Values != Assumed || !strings.Contains(strings.Join(p.Notes, "\n"), "read its standard input") {
		t.Errorf("a pipe: %+v\n%s", sum, out)
	}
}
