//go:build !race

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"memorymark/internal/testmachine"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

// documents returns the texts that people read: every Markdown file of the
// repository, by its path from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") && name != ".." || name == "node_modules" || name == "build"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, ".md"):
			data, err := os.ReadFile(path)
			relative, _ := filepath.Rel(root, path)
			out[filepath.ToSlash(relative)] = string(data)
			return err
		}
		return nil
	})
	if err != nil || len(out) < 10 {
		t.Fatalf("%d documents found: %v", len(out), err)
	}
	return out
}

var (
	fence   = regexp.MustCompile("(?ms)^```(\\w*)\\n(.*?)^```$")
	link    = regexp.MustCompile(`!?\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	inline  = regexp.MustCompile("`(memorymark [^`]+)`")
)

// Every link of a document leads to a file that is there, and to a heading
// that it has.
func TestLinks(t *testing.T) {
	docs := documents(t)
	for name, text := range docs {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
				continue
			}
			if target.Scheme != "" {
				continue // the network is not ours to test
			}
			path := name
			if target.Path != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(name), target.Path))
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
			if target.Fragment != "" && !hasAnchor(docs[path], target.Fragment) {
				t.Errorf("%s links to %s, and %s has no such heading", name, m[1], path)
			}
		}
	}
}

// hasAnchor reports whether a document has a heading of that anchor, made as
// code hosts make them: small letters, no punctuation, dashes for spaces.
func hasAnchor(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		made := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1])
		if made == anchor {
			return true
		}
	}
	return false
}

// Every command line that a document, a unit or a script shows is one that the
// program takes: the command exists, and so does every flag.
func TestShownCommands(t *testing.T) {
	shown := make(map[string][]string) // by where
	for name, text := range documents(t) {
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			if m[1] == "sh" || m[1] == "console" {
				shown[name] = append(shown[name], commandLines(m[2])...)
			}
		}
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			shown[name] = append(shown[name], m[1])
		}
	}
	for _, name := range []string{"memorymark.service", "memorymark-worker.service", "worker.sbatch", "kubernetes.yaml"} {
		data := testmachine.ReadFile(t, filepath.Join(root, "deploy", name))
		if shown[name] = commandLines(string(data)); len(shown[name]) == 0 {
			t.Errorf("deploy/%s runs nothing", name)
		}
	}
	for where, lines := range shown {
		for _, line := range lines {
			if err := takes(line); err != nil {
				t.Errorf("%s: %s: %v", where, line, err)
			}
		}
	}
}

// commandLines returns the calls of the program in lines of a shell, a unit or
// a manifest.
func commandLines(text string) []string {
	text = strings.ReplaceAll(text, "\\\n", " ")
	var out []string
	for line := range strings.Lines(text) {
		if args, ok := strings.CutPrefix(strings.TrimSpace(line), "args: ["); ok {
			var list []string
			if yaml.Unmarshal([]byte("["+args), &list) == nil {
				out = append(out, "memorymark "+strings.Join(list, " "))
			}
			continue
		}
		before, args, ok := strings.Cut(line, "memorymark ")
		before = strings.TrimSpace(before)
		starts := before == "" || before == "$" || strings.HasSuffix(before, "/") || strings.HasPrefix(before, "srun")
		if ok && starts && !strings.HasPrefix(before, "#") {
			args, _, _ = strings.Cut(args, " > ")
			args, _, _ = strings.Cut(args, " # ")
			out = append(out, "memorymark "+strings.TrimSpace(args))
		}
	}
	return out
}

// takes parses a command line without running it.
func takes(line string) error {
	words := strings.Fields(line)[1:]
	for i, w := range words {
		if w = strings.Trim(w, `"'`); w == "…" || w == "..." {
			words = words[:i]
			break
		}
		words[i] = w
	}
	top := newRoot(&env{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard})
	c, rest, err := top.Find(words)
	if err != nil {
		return err
	}
	if c == top && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("there is no such command")
	}
	if err := c.ParseFlags(rest); !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return nil
}

// The API guide's commands work against a real server, one after the other in
// one shell.
func TestAPIGuide(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT TESTED: there is no curl")
	}
	data := testmachine.ReadFile(t, filepath.Join(root, "docs", "api.md"))
	// A request that is refused fails; without --fail curl would not care.
	script := "set -eu\nMEMORYMARK_TOKEN=none\ncurl() { command curl --fail-with-body -S \"$@\"; }\n"
	blocks := 0
	for _, m := range fence.FindAllStringSubmatch(string(data), -1) {
		if m[1] == "sh" {
			script += m[2]
			blocks++
		}
	}
	if blocks < 10 {
		t.Fatalf("only %d blocks of commands found", blocks)
	}
	script = strings.ReplaceAll(script, "http://127.0.0.1:5001", serve(t))
	script = strings.ReplaceAll(script, "examples/", "\"$EXAMPLES\"/")
	examples, err := filepath.Abs(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh", "-x")
	c.Dir, c.Stdin = t.TempDir(), strings.NewReader(script)
	c.Env = append(os.Environ(), "EXAMPLES="+examples)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out[max(0, len(out)-3000):])
	}
}
