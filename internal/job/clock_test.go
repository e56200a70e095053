package job

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
	"time"
)

// TestClockSkew has servers and workers whose clocks are days apart. Jobs are
// taken, finished and taken over all the same, and the times in their records
// are the engine's.
func TestClockSkew(t *testing.T) {
	q := openEmbedded(t)
	b := &bench{T: t, ctx: t.Context(), q: q, card: "t4"}
	before := time.Now().Add(-time.Millisecond)
	for _, skew := range []time.Duration{-72 * time.Hour, 72 * time.Hour} {
		q.now = func() time.Time { return time.Now().Add(skew) }
		j := b.submit(`{}`)
		b.take(b.link()) // which falls silent
		lease := b.take(b.link())
		b.must(lease.succeed(b.ctx, "1"))
		got := b.get(j.ID)
		for name, at := range map[string]time.Time{"queued": got.Queued, "started": got.Started, "ended": got.Ended} {
			if at.Before(before) || at.After(time.Now()) {
				t.Errorf("with clocks off by %v, it was %s at %v", skew, name, at)
			}
		}
		if got.Attempt != 2 || got.State != Succeeded || got.Queued.After(got.Started) || got.Started.After(got.Ended) {
			t.Errorf("with clocks off by %v: %+v", skew, got)
		}
	}
}

// TestClocksAreNotRead lists who reads a clock. To read another is to compare
// it with something, so it needs a reason.
func TestClocksAreNotRead(t *testing.T) {
	allowed := map[string]string{
		"queue.go":   "ids sort by the server's time",
		"storage.go": "a server measures on its own clock how old its last proof is",
		"index.go":   "a server measures silence on its own clock",
		"fleet.go":   "a server measures silence on its own clock",
		"damage.go":  "a disk's own times say which events were to be forgotten",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	workerFiles, err := filepath.Glob("../worker/*.go")
	if err != nil || len(workerFiles) == 0 {
		t.Fatal("there are no sources of the worker", err)
	}
	for _, file := range append(files, workerFiles...) {
		if matched, _ := filepath.Match("*_test.go", filepath.Base(file)); matched || allowed[file] != "" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if ok && (s.Sel.Name == "Now" || s.Sel.Name == "Since" || s.Sel.Name == "Until") {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s reads the clock with time.%s", file, s.Sel.Name)
				}
			}
			return true
		})
	}
}
