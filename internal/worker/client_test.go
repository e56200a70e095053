package worker

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"memorymark/internal/job"
)

// A result is sent as it is: what is as long as it may be must not grow.
func TestResultsDoNotGrow(t *testing.T) {
	var sent []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	result := `{"where":"<module> & ` + strings.Repeat("<", 1000) + `"}`
	c := &Client{URL: s.URL}
	if err := c.End(t.Context(), "w", job.Ending{Job: "j", Attempt: 1, To: job.Succeeded, Result: json.RawMessage(result)}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(sent), result) {
		t.Errorf("%d bytes were sent for a result of %d", len(sent), len(result))
	}
}
