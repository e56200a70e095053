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

// requestedProcess is a process of which the requests alone were kept.
type requestedProcess struct {
	ID       string
	Workload json.RawMessage
	Requests []int64
}

func readRequests(t *testing.T) []requestedProcess {
	t.Helper()
	f, err := os.Open(truthDir + "/requests.jsonl.xz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := xz.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []requestedProcess
	for lines := json.NewDecoder(r); lines.More(); {
		var c requestedProcess
		if err := lines.Decode(&c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func TestRequests(t *testing.T) {
	for _, c := range readRequests(t) {
		t.Run(c.ID, func(t *testing.T) {
			if diff := c.difference(); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// difference returns where the prediction parts from what was kept.
func (c *requestedProcess) difference() string {
	w, err := workload.Parse(c.Workload)
	if err != nil {
		return err.Error()
	}
	p, err := Run(w, h200, 2)
	if err != nil {
		return err.Error()
	}
	// Autocast drops its cache in an order that is not to be known.
	amp := strings.HasPrefix(string(w.Precision), "amp")
	return compareRequests(p.Trace(), requested(c.Requests), func(int) bool { return amp })
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
