package allocator

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"memorymark/internal/trace/tracetest"
)

const probesDir = "../../testdata/truth/allocator"

// TestTruthProbes replays random programs that ran on a GPU under every
// setting, with limits, several streams, private pools and graphs, and holds
// all of the statistics to what torch.cuda.memory_stats said there.
func TestTruthProbes(t *testing.T) {
	f, err := os.Open(filepath.Join(probesDir, "allocator.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	cases := 0
	for ; lines.Scan(); cases++ {
		var p probe
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		t.Run(p.ID, func(t *testing.T) {
			t.Parallel()
			p.check(t)
		})
	}
	if cases != 25 {
		t.Errorf("%d programs, want 25", cases)
	}
}

type probe struct {
	ID       string
	Total    float64
	Fraction float64
	Stats    map[string]int64
}

func (p *probe) check(t *testing.T) {
	tr := tracetest.Trace(t, filepath.Join(probesDir, p.ID+".pickle.xz"))
	// set_per_process_memory_fraction truncates as well.
	r, err := NewReplay(tr, int64(math.Floor(p.Fraction*p.Total)), Levels{})
	if err != nil {
		t.Fatal(err)
	}
	out := r.Recorded()
	if out.Difference != nil {
		t.Fatal(out.Difference)
	}
	for key, want := range p.Stats {
		switch key {
		case "max_split_size":
			continue // a setting, not a statistic
		case "num_sync_all_streams", "num_alloc_retries":
			// The programs empty the cache at random. Where that released
			// nothing, or what a retry would have released too, the recording
			// cannot tell.
			continue
		}
		got, err := out.Stats.byName(key)
		if err != nil {
			t.Error(err)
		} else if got != want {
			t.Errorf("%s is %d, PyTorch said %d", key, got, want)
		}
	}
}
