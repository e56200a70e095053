package steptime

import (
	"math"
	"slices"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/trace/tracetest"
)

// timed is a step that was timed on an H200, and what it asks of the card.
type timed struct {
	ID      string  `json:"id"`
	Model   string  `json:"model"`
	Source  string  `json:"source"` // own or throughput
	Seconds float64 `json:"seconds_per_step"`
	Work    Work    `json:"work"`
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
	for _, step := range tracetest.Lines[timed](t, "testdata/timed.jsonl.xz") {
		share := step.Work.Seconds(card)/step.Seconds - 1
		t.Logf("%-42s %6.1f ms, estimated %+4.0f %% %v", step.ID, 1e3*step.Seconds, 100*share, step.Work.Range(card).Holds(step.Seconds))
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

// A batch normalization reads its images twice, and has a block for each channel: on
// a card of half of the float32 rate but as many multiprocessors and the same clock it
// takes no longer, on one of an eighth of the bandwidth what memory takes.
func TestBatchNorm(t *testing.T) {
	const elements = 128 * 256 * 56 * 56
	l := Launches{{Launch: Launch{Kind: BatchNorm, Type: FP16, Size: [maxSizes]float64{Forward, 1, elements, 256}}, Count: 1}}
	card := *h200Card(t)
	own := l.Busy(&card, 0).Device
	card.DenseTFLOPS.FP32 /= 2
	if got := l.Busy(&card, 0).Device; got != own {
		t.Errorf("with half of the rate %g s, with all %g s", got, own)
	}
	card.BandwidthGBPerS /= 8
	if got, least := l.Busy(&card, 0).Device, 3*2*elements/(card.BandwidthGBPerS*1e9); got < least || got > 1.5*least {
		t.Errorf("with an eighth of the bandwidth %g s, which moves its bytes in %g s", got, least)
	}
}

// Where the host and the card have as much to do, a step takes longer than either.
func TestTogether(t *testing.T) {
	for _, c := range []struct{ device, host, least, most float64 }{{1, 1, 1.05, 1.2}, {1, 0.4, 1, 1.01}, {0.4, 1, 1, 1.01}} {
		if got := Seconds(Busy{Device: c.device, Host: c.host}); got < c.least || got > c.most {
			t.Errorf("%g s of the card and %g s of the host take %g s", c.device, c.host, got)
		}
	}
}
