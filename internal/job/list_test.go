package job

import (
	"encoding/json"
	"strings"
	"testing"
)

// A page of long jobs has fewer of them, and all are on some page.
func TestPagesAreBounded(t *testing.T) {
	const jobs, size = 12, 1 << 20
	q := openEmbedded(t)
	for i := range jobs {
		payload, err := json.Marshal(strings.Repeat("x", size) + string(rune('a'+i)))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := q.Submit(t.Context(), Request{Card: Any, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	seen := make(map[string]bool)
	for f := (Filter{Limit: MaxLimit}); ; {
		p, err := q.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Jobs)*size > maxPageBytes+size || p.Total != jobs {
			t.Errorf("a page of %d jobs of %d bytes each, of %d", len(p.Jobs), size, p.Total)
		}
		for _, j := range p.Jobs {
			seen[j.ID] = true
		}
		if f.After = p.Next; f.After == "" {
			break
		}
	}
	if len(seen) != jobs {
		t.Errorf("%d jobs on all pages, of %d", len(seen), jobs)
	}
}
