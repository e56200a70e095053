// Package memorymark_test holds the rules that keep the code maintainable; see
// docs/architecture.md.
package memorymark_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

const module = "memorymark"

// core is the packages that only compute: the same input gives the same output, on
// any machine, in any test.
var core = internalDirs("bytesize", "invalid", "nearest", "hfconfig", "evidence", "figure", "workbudget", "workload", "gpu", "trace", "torch", "models", "pymodule", "allocator", "steptime", "predict", "change", "timeline", "search")

// bans says who must not import what, and why, directly or indirectly. A path
// that ends in /... stands for everything below it.
var bans = []struct {
	who    []string // packages, relative to the module; nil for all
	except []string // packages that may
	ban    []string // imports
	but    []string // imports that the ban does not mean
	direct bool     // indirect imports are fine
	why    string
}{
	{
		who: internalDirs("torch"), ban: full(internalDirs("allocator")),
		why: "they agree through trace alone, so that each can be checked against recordings apart from the other",
	},
	{
		who: internalDirs("torch", "models"), ban: full(internalDirs("pymodule")),
		why: "what is evaluated is checked against what is written by hand, which must not depend on it",
	},
	{
		who: internalDirs("allocator"), ban: full(internalDirs("torch", "models", "predict")),
		why: "the allocator must not know who made the trace",
	},
	{
		who: core, ban: []string{"context", "log", "log/slog", "net", "net/http", "os", "os/exec", "io/fs", "path/filepath"},
		why: "the core takes values and returns values: no files, network, logging or cancelling",
	},
	{
		who: core, ban: full(internalDirs("snapshot", "measure", "analysis", "engine", "study", "report", "draw", "job", "worker", "server", "cli")),
		why: "imports run one way, from the edges to the core",
	},
	{
		who: internalDirs("plan"), ban: append([]string{"log", "log/slog", "net", "net/http", "os", "os/exec", "io/fs"}, full(internalDirs("snapshot", "measure", "analysis", "engine", "study", "report", "draw", "job", "worker", "server"))...),
		why: "a plan takes values and returns values; of the world outside it knows only that it may be told to stop",
	},
	{
		who: internalDirs("timeline"), ban: []string{"html/template", "text/template", "image/...", "encoding/xml"},
		why: "timeline says what to draw; how it looks is draw's and the page's",
	},
	{
		who: internalDirs("draw"), ban: append([]string{"net/http", "os"}, full([]string{"internal/..."})...), but: full(internalDirs("bytesize", "figure", "timeline", "trace")),
		why: "a picture is made of what it shows; who computed that does not matter",
	},
	{
		who: internalDirs("snapshot"), ban: full(internalDirs("allocator")),
		why: "reading a file needs no simulation",
	},
	{
		who: internalDirs("recording"), ban: full(internalDirs("report", "draw", "predict", "measure", "job", "worker", "server")),
		why: "an answer does not depend on how it looks or who asks",
	},
	{
		who: internalDirs("study"), ban: append([]string{"net/http"}, full(internalDirs("measure", "report", "draw", "job", "worker", "server"))...),
		why: "a study gets its profiler and hands over data; who measures and how it looks is decided outside",
	},
	{
		who: internalDirs("report"), ban: append([]string{"os"}, full(internalDirs("measure", "job", "worker", "server"))...), direct: true,
		why: "a result looks the same on the command line's disk and in the server's archive",
	},
	{
		except: internalDirs("job"), ban: []string{"github.com/nats-io/..."}, direct: true,
		why: "only the queue knows its engine; others see jobs",
	},
	{
		who: internalDirs("job"), ban: full([]string{"internal/..."}),
		why: "a job's payload, progress and result are opaque to the queue: it takes no business decisions",
	},
	{
		who: internalDirs("worker"), ban: full([]string{"internal/..."}), but: full(internalDirs("job")),
		why: "a worker gets what it runs as a function, so that measuring can change without the loop",
	},
	{
		except: internalDirs("cli"), ban: []string{"github.com/spf13/..."}, direct: true,
		why: "flags are the command line's; the server offers the same without them",
	},
	{
		who: internalDirs("snapshotstore"), ban: full(internalDirs("snapshot", "trace")),
		why: "it keeps bytes; what they mean is decided before they are kept",
	},
	{
		except: internalDirs("server"), ban: []string{"github.com/danielgtaylor/...", "github.com/prometheus/...", "github.com/rs/..."}, direct: true,
		why: "how the API looks is the server's business alone",
	},
	{
		who: internalDirs("analysis"), ban: full(internalDirs("engine", "study", "snapshot")),
		why: "an answer is composed of what was found; who ran the steps does not matter",
	},
	{
		who: internalDirs("analysis", "engine", "report", "snapshot", "snapshotstore", "recording", "token"), ban: []string{"net/http"},
		why: "what is answered does not depend on how it was asked",
	},
	{
		who: internalDirs("server"), ban: full(internalDirs("torch", "models", "search")), direct: true,
		why: "the server hands out what predict and analysis say; it has no arithmetic on memory",
	},
	{
		except: []string{"cmd/memorymark"}, ban: full(internalDirs("cli")), direct: true,
		why: "what a second package needs does not belong in the command line",
	},
	{
		who: []string{"cmd/memorymark"}, ban: full([]string{"internal/..."}), but: full(internalDirs("cli")), direct: true,
		why: "main is one call",
	},
}

func TestImports(t *testing.T) {
	all := packages(t)
	for dir := range all {
		imports := reached(all, dir)
		for _, b := range bans {
			if b.who != nil && !slices.Contains(b.who, dir) || slices.Contains(b.except, dir) {
				continue
			}
			for imported, through := range imports {
				if matches(b.ban, imported) && !matches(b.but, imported) && (!b.direct || len(through) == 1) {
					t.Errorf("%s imports %s: %s", strings.Join(through, " imports "), imported, b.why)
				}
			}
		}
	}
}

// reached returns what a package imports, itself or through others of the
// module, and through which: the shortest chain, from the package on.
func reached(all map[string]*pkg, dir string) map[string][]string {
	out := make(map[string][]string)
	for queue := [][]string{{dir}}; len(queue) > 0; queue = queue[1:] {
		through := queue[0]
		for imported := range all[through[len(through)-1]].imports {
			if _, known := out[imported]; known {
				continue
			}
			out[imported] = through
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
				queue = append(queue, append(slices.Clone(through), ours))
			}
		}
	}
	return out
}

// A ban that names a package that no longer exists protects nothing.
func TestBansMeanSomething(t *testing.T) {
	all := packages(t)
	imported := make(map[string]bool)
	for _, p := range all {
		for path := range p.imports {
			imported[path] = true
		}
	}
	for _, b := range bans {
		for _, dir := range slices.Concat(b.who, b.except) {
			if all[dir] == nil {
				t.Errorf("%s is gone; it is bound by: %s", dir, b.why)
			}
		}
		for _, path := range slices.Concat(b.ban, b.but) {
			if !anything(all, imported, path) {
				t.Errorf("%s is gone; it is banned by: %s", path, b.why)
			}
		}
	}
}

// anything reports whether a pattern of imports means a package: one of the
// module or the standard library, or one of others that is imported.
func anything(all map[string]*pkg, imported map[string]bool, pattern string) bool {
	for dir := range all {
		if matches([]string{pattern}, module+"/"+dir) {
			return true
		}
	}
	for path := range imported {
		if matches([]string{pattern}, path) {
			return true
		}
	}
	ours := strings.HasPrefix(pattern, module+"/")
	return !ours && !strings.Contains(strings.Split(pattern, "/")[0], ".") // of the standard library
}

func TestPackageComments(t *testing.T) {
	for dir, p := range packages(t) {
		if len(p.comments) != 1 {
			t.Errorf("%s: want one package comment, have %d: %v", dir, len(p.comments), p.comments)
		}
	}
}

func TestPackageNames(t *testing.T) {
	for dir, p := range packages(t) {
		for _, bad := range []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base"} {
			if p.name == bad {
				t.Errorf("%s: name the package after the one thing it is about", dir)
			}
		}
		if base := path.Base(path.Join(module, dir)); p.name != base && p.name != "main" {
			t.Errorf("%s: package %s is not called as its folder", dir, p.name)
		}
	}
}

// Make tests what starts no goroutines without the race detector.
func TestCoreStartsNoGoroutines(t *testing.T) {
	for _, dir := range core {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files: %v", dir, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") && startsGoroutines(t, file) {
				t.Errorf("%s starts a goroutine: the core computes, and others decide what runs at the same time", file)
			}
		}
	}
}

// startsGoroutines looks for go statements, and for calls of a method Go, as wait
// groups have.
func startsGoroutines(t *testing.T, file string) (found bool) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Go"
		}
		return !found
	})
	return found
}

func TestModule(t *testing.T) {
	for _, file := range []string{"go.mod", "tools/go.mod"} {
		text := testmachine.ReadFile(t, file)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "replace") {
				t.Errorf("%s: %s: others cannot build what depends on a replacement", file, strings.TrimSpace(line))
			}
		}
	}
}

// pkg is what the rules look at. Files of tests do not count.
type pkg struct {
	name     string
	imports  map[string]string // path to a file that imports it
	comments []string          // files with a package comment
}

// packages returns the packages of the module by folder.
func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	out := make(map[string]*pkg)
	for _, file := range goFiles(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if err := addFile(out, file); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// goFiles are the files of the module that end so.
func goFiles(t *testing.T, end string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && file != "." && (strings.ContainsAny(name[:1], "._") || slices.Contains([]string{"testdata", "node_modules", "build"}, name)):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(name, end):
			out = append(out, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%d files found: %v", len(out), err)
	}
	return out
}

func addFile(out map[string]*pkg, file string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	dir := path.Dir(file)
	p := out[dir]
	if p == nil {
		p = &pkg{name: f.Name.Name, imports: make(map[string]string)}
		out[dir] = p
	}
	if hasText(f.Doc) {
		p.comments = append(p.comments, path.Base(file))
	}
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		p.imports[imported] = file
	}
	return nil
}

func hasText(doc *ast.CommentGroup) bool { return doc != nil && strings.TrimSpace(doc.Text()) != "" }

func matches(patterns []string, imported string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if dir, ok := strings.CutSuffix(p, "..."); ok {
			return strings.HasPrefix(imported, dir)
		}
		return p == imported
	})
}

// internalDirs returns the folders of internal packages.
func internalDirs(names ...string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = "internal/" + n
	}
	return out
}

// full returns the import paths of folders.
func full(dirs []string) []string {
	out := make([]string, len(dirs))
	for i, d := range dirs {
		out[i] = module + "/" + d
	}
	return out
}
