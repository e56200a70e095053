//go:build !race

package cli

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// unrun are the beginnings of commands that the README and the guide show and
// that are not run here, with the reason. Their flags are checked like all
// others.
var unrun = map[string]string{
	"memorymark serve":                       "serves until it is stopped, and its tokens differ each time; serve.txtar runs it",
	"memorymark worker":                      "works until it is stopped; worker.txtar runs it",
	"export ":                                "is for the shell",
	"make ":                                  "builds and tests what is being tested",
	"memorymark run --gpu rtx-4090 -- vllm ": "needs vLLM, which takes 10 GB",
}

// emulated are commands that run a Python program of the page.
var emulated = regexp.MustCompile(`^memorymark (run|analyze train\.py:make) `)

// leftOut is a line that stands for lines that a document leaves out.
var leftOut = regexp.MustCompile("(?m)^…\n")

// hostMemory is what Python itself takes, too, which is no two times the same.
var hostMemory = regexp.MustCompile(`host memory: [0-9.]+ GiB`)

// TestConsole runs the commands in the console blocks of the README and the
// guide, each page in a folder of its own with the examples, and holds the
// pages to what they print. With -update, blocks that leave nothing out are
// written again.
func TestConsole(t *testing.T) {
	left, python := make(map[string]bool), ""
	if os.Getenv("MEMORYMARK_TEST_PYTHON") != "" {
		python = testmachine.ForkingPython(t)
		t.Setenv("PATH", filepath.Dir(python)+string(os.PathListSeparator)+filepath.Dir(testmachine.Python(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	for name, text := range documents(t) {
		if name == "README.md" || strings.HasPrefix(name, "docs/guide/") {
			t.Run(name, func(t *testing.T) { runConsole(t, name, text, python, left) })
		}
	}
	for command := range unrun {
		if !left[command] {
			t.Errorf("no page shows %q: take it off the list", command)
		}
	}
}

func runConsole(t *testing.T, name, text, python string, left map[string]bool) {
	file, err := filepath.Abs(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	copyExamples(t, folder)
	t.Chdir(folder)
	written := text
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == "python" && strings.HasPrefix(m[2], "# train.py\n") {
			testmachine.WriteFile(t, "train.py", m[2])
		}
		if m[1] != "console" {
			continue
		}
		for _, shown := range strings.SplitAfter("\n"+m[2], "\n$ ")[1:] {
			command, want, _ := strings.Cut(strings.TrimSuffix(shown, "$ "), "\n")
			if isUnrun(command, left) {
				continue
			}
			if python == "" && emulated.MatchString(command) {
				t.Logf("NOT TESTED: %s: set MEMORYMARK_TEST_PYTHON to a Python with a CUDA build of PyTorch", command)
				continue
			}
			got := printed(t, command)
			switch {
			case hasLines(hostMemory.ReplaceAllString(got, ""), hostMemory.ReplaceAllString(want, "")):
			case *update && !leftOut.MatchString(want):
				written = strings.Replace(written, "\n$ "+command+"\n"+want, "\n$ "+command+"\n"+got, 1)
			default:
				t.Errorf("%s prints\n%s\n%s shows\n%s", command, got, name, want)
			}
		}
	}
	if written != text {
		testmachine.WriteFile(t, file, written)
	}
}

// copyExamples copies the examples into a folder; one of them is a link to the
// recording that the tests use.
func copyExamples(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "examples"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(folder, strings.TrimPrefix(path, root))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isUnrun(command string, left map[string]bool) bool {
	for begin := range unrun {
		if strings.HasPrefix(command, begin) {
			left[begin] = true
			return true
		}
	}
	return false
}

// printed runs a command, those of others in a shell. No is an answer too:
// what is recorded ran out of memory.
func printed(t *testing.T, command string) string {
	t.Helper()
	args, ok := strings.CutPrefix(command, "memorymark ")
	if !ok {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
		}
		return string(out)
	}
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), strings.Fields(args), strings.NewReader(""), &stdout, &stderr); !isAnswer(code) {
		t.Errorf("%s: exit code %d: %s", command, code, &stderr)
	}
	if emulated.MatchString(command) {
		return stdout.String() + stderr.String() // what the program prints, and what it took
	}
	return stdout.String()
}

// hasLines reports whether a text is what a document shows of it: the pieces
// between the lines that are left out, in their order, from the first line on
// and, unless the end is left out, to the last.
func hasLines(text, shown string) bool {
	pieces := leftOut.Split(shown, -1)
	last := len(pieces) - 1
	for i, piece := range pieces {
		at := strings.Index(text, piece)
		if i == last && piece != "" {
			at = strings.LastIndex(text, piece)
		}
		if at < 0 || i == 0 && at > 0 || i == last && (piece != "" || last == 0) && at+len(piece) != len(text) {
			return false
		}
		text = text[at+len(piece):]
	}
	return true
}

func TestHasLines(t *testing.T) {
	const text = "a\nb\nc\nd\n"
	for shown, want := range map[string]bool{
		text: true, "a\n…\nd\n": true, "a\nb\n…\n": true, "…\nb\n…\n": true, "…\nd\n": true,
		"": false, "a\n": false, "b\n…\n": false, "a\n…\nc\n": false, "…\nc\n…\nb\n…\n": false, "a\n…\nx\n…\n": false,
	} {
		if got := hasLines(text, shown); got != want {
			t.Errorf("hasLines(%q): %v", shown, got)
		}
	}
}
