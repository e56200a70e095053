package steptime

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/ulikunitz/xz"

	"memorymark/internal/gpu"
)

// timed is a step that was timed on an H200, and what it asks of the card.
type timed struct {
	ID      string  `json:"id"`
	Model   string  `json:"model"`
	Source  string  `json:"source"` // own or throughput
	Seconds float64 `json:"seconds_per_step"`
	Work    Work    `json:"work"`
}

func readTimed(t *testing.T) []timed {
	t.Helper()
	f, err := os.Open("testdata/timed.jsonl.xz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unpacked, err := xz.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	var out []timed
	for d := json.NewDecoder(unpacked); d.More(); {
		var step timed
		if err := d.Decode(&step); err != nil {
			t.Fatal(err)
		}
		out = append(out, step)
	}
	return out
}

func h200Card(t *testing.T) *gpu.Card {
	t.Helper()
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// accuracyOf says how far off shares are.
func accuracyOf(off []float64) Accuracy {
	slices.Sort(off)
	return Accuracy{Steps: len(off), Half: off[len(off)/2], NineInTen: off[len(off)*9/10]}
}

// TestSeconds compares the estimates with what was timed.
func TestSeconds(t *testing.T) {
	card := h200Card(t)
	bySource := make(map[string][]float64)
	for _, step := range readTimed(t) {
		share := step.Work.Seconds(card)/step.Seconds - 1
		t.Logf("%-42s %6.1f ms, estimated %+4.0f %%", step.ID, 1e3*step.Seconds, 100*share)
		bySource[step.Source] = append(bySource[step.Source], math.Abs(share))
	}
	for source, off := range bySource {
		found := accuracyOf(off)
		t.Logf("%s: %v", source, found)
		if found.Half > Stated.Half || found.NineInTen > Stated.NineInTen {
			t.Errorf("%s: %v; stated is: %v", source, found, Stated)
		}
	}
}

// The parts of a step have all of its launches and calls between them.
func TestSplit(t *testing.T) {
	w := &Work{Calls: 30, Launches: []Asked{{Kind: Kernel}, {Kind: Kernel, Backward: true}, {Kind: Wait}}, Order: []int{0, 0, 1, 0, 1, 0, 0, 2}}
	passes, update := w.Split()
	if !slices.Equal(passes.Order, []int{0, 0, 1, 0, 1}) || !slices.Equal(update.Order, []int{0, 0, 2}) || passes.Calls != 18 || update.Calls != 12 {
		t.Errorf("%+v and %+v", passes, update)
	}
	var none *Work
	if passes, update := none.Split(); !passes.Empty() || !update.Empty() {
		t.Error("work that is not known was split")
	}
}
