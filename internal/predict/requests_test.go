package predict

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// TestRequests predicts processes of which the requests alone were kept.
func TestRequests(t *testing.T) {
	f, err := os.Open(truthDir + "/requests.jsonl.xz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := xz.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for lines := json.NewDecoder(r); lines.More(); {
		var c struct {
			ID       string
			Workload json.RawMessage
			Requests []int64
		}
		if err := lines.Decode(&c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			w, err := workload.Parse(c.Workload)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Run(w, h200, 2)
			if err != nil {
				t.Fatal(err)
			}
			// Autocast drops its cache in an order that is not to be known.
			amp := strings.HasPrefix(string(w.Precision), "amp")
			if diff := compareRequests(p.Trace(), requested(c.Requests), func(int) bool { return amp }); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// requested makes a trace of requests: the size of an allocation, or minus the
// number, from 1, of the allocation that is freed.
func requested(requests []int64) *trace.Trace {
	tr := trace.New(0, trace.NewTables())
	next := trace.ID(0)
	for _, r := range requests {
		if r > 0 {
			tr.Events = append(tr.Events, trace.Event{Action: trace.Alloc, Size: r, ID: next})
			next++
		} else {
			tr.Events = append(tr.Events, trace.Event{Action: trace.FreeCompleted, ID: trace.ID(-1 - r)})
		}
	}
	return tr
}
