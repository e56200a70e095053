package predict

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/models/modelstest"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload"
)

// requestsFile has processes of a real card.
const requestsFile = truthDir + "/requests.jsonl.xz"

// requestedProcess is a process of which the requests alone were kept.
type requestedProcess struct {
	ID       string
	Workload json.RawMessage
	Requests []int64
	Steps    int // 2 if it is not said
}

func TestRequests(t *testing.T) {
	testRequests(t, requestsFile)
}

// TestFamilies holds families to processes that PyTorch ran on an emulated H200,
// and on a real one, event by event: small models in every precision, under both kinds of
// attention, with masks and without, checkpointed or not, with each head.
func TestFamilies(t *testing.T) {
	paths, err := filepath.Glob(truthDir + "/families/*.jsonl.xz")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no recordings", err)
	}
	for _, path := range paths {
		testRequests(t, path)
	}
}

// TestCombined holds keys that meet in one workload to processes of MemoryMark's
// prober on an emulated H200, likewise: loops of libraries with adapters, parts of
// a step.
func TestCombined(t *testing.T) { testRequests(t, truthDir+"/combined.jsonl.xz") }

// TestRanksInLoops does so with ranks of DDP in the loops of libraries, which wrap the
// model themselves and reduce gradients after the last pass of a step only.
func TestRanksInLoops(t *testing.T) { testRequests(t, truthDir+"/ranks-in-loops.jsonl.xz") }

// TestVersions holds families to processes of other versions, likewise.
func TestVersions(t *testing.T) {
	paths, err := filepath.Glob(truthDir + "/versions/*.jsonl.xz")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no recordings", err)
	}
	for _, path := range paths {
		testRequests(t, path)
	}
}

func testRequests(t *testing.T, path string) {
	for _, c := range tracetest.Lines[requestedProcess](t, path) {
		t.Run(c.ID, func(t *testing.T) {
			_, err := workload.Parse(c.Workload)
			modelstest.NeedSourceFor(t, err)
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
	card := h200
	if w.GPU != "" && w.GPU != "h200" {
		c, err := gpu.Find(w.GPU)
		if err != nil {
			return err.Error()
		}
		card = deviceOf(c)
	}
	p, err := (&program{w: w, everyPass: true}).run(card, cmp.Or(c.Steps, 2), nil)
	if err != nil {
		return err.Error()
	}
	// Autocast drops its cache in an order that is not to be known.
	amp := strings.HasPrefix(string(w.Precision), "amp")
	return compareRequests(p.requests(), tracetest.Requests(c.Requests), func(int) bool { return amp })
}
