package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memorymark/internal/testmachine"
)

func TestUpload(t *testing.T) {
	const content = "a snapshot"
	path := filepath.Join(t.TempDir(), "step.pickle")
	testmachine.WriteFile(t, path, content)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	for name, c := range map[string]struct {
		answers []int // then 201
		tries   int
		want    string // in the error
	}{
		"at once":         {nil, 1, ""},
		"after a restart": {[]int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusTooManyRequests}, 4, ""},
		"not wanted":      {[]int{http.StatusUnprocessableEntity}, 1, "422"},
		"no room":         {[]int{http.StatusInsufficientStorage}, 1, "507"},
		"not let in":      {[]int{http.StatusUnauthorized}, 1, "401"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != content || r.URL.Path != "/v1/snapshots" || r.URL.Query().Get("name") != "step.pickle" ||
					r.URL.Query().Get("origin") != "measured" || r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("%s %s %v with %q, %v", r.Method, r.URL, r.Header, body, err)
				}
				tries++
				if tries <= len(c.answers) {
					http.Error(w, "no", c.answers[tries-1])
					return
				}
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, `{"id":%q}`, hash)
			}))
			defer s.Close()
			id, err := (&Client{URL: s.URL + "/", Token: "secret"}).Snapshot(t.Context(), path)
			if c.want == "" && (err != nil || id != hash) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q, %v", id, err)
			}
			if tries != c.tries {
				t.Errorf("%d tries", tries)
			}
		})
	}
}

func TestUploadGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "step.pickle")
	testmachine.WriteFile(t, path, "")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := (&Client{URL: "http://127.0.0.1:1"}).Snapshot(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
