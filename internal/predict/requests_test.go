package predict

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
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
			got := signed(p.Trace())
			if strings.HasPrefix(string(w.Precision), "amp") {
				sortFrees(got) // autocast drops its cache in an order that is not to be known
				sortFrees(c.Requests)
			}
			if diff := firstDifference(got, c.Requests); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// signed writes requests as numbers: the size of an allocation, or minus the
// number of the allocation that is freed.
func signed(tr *trace.Trace) []int64 {
	var out []int64
	for _, e := range tr.Events {
		switch e.Action {
		case trace.Alloc:
			out = append(out, e.Size)
		case trace.FreeCompleted:
			out = append(out, -1-int64(e.ID))
		}
	}
	return out
}

// sortFrees sorts the frees between one allocation and the next.
func sortFrees(requests []int64) {
	for i := 0; i < len(requests); {
		j := i
		for j < len(requests) && requests[j] < 0 {
			j++
		}
		slices.Sort(requests[i:j])
		i = j + 1
	}
}

func firstDifference(got, want []int64) string {
	n := min(len(got), len(want))
	for i := range n {
		if got[i] != want[i] {
			from, to := max(i-5, 0), min(i+5, n)
			return fmt.Sprintf("event %d of %d differs\npredicted %d\nrecorded  %d", i, len(want), got[from:to], want[from:to])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d events, recorded are %d", len(got), len(want))
	}
	return ""
}
