package worker

import (
	"errors"
	"strings"
	"testing"
)

// TestRevokedToken deletes the token of a worker that waits for jobs: it ends, and says why.
func TestRevokedToken(t *testing.T) {
	l := newLab(t)
	w := l.join(l.url, Config{})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(l.ctx) }()
	l.awaitListed(w.ID())
	if err := l.list.Delete("rack"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "401") {
			t.Errorf("the worker ended with %v", err)
		}
	case <-l.ctx.Done():
		t.Error("the worker did not end")
	}
}
