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

func h200(t *testing.T) *gpu.Card {
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
	card := h200(t)
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

// TestStated fits the constants again without each model in turn, and holds
// what is stated to how far off the steps of that model are then.
func TestStated(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED: it takes half a minute")
	}
	card, steps := h200(t), readTimed(t)
	var off []float64
	done := make(map[string]bool)
	for _, left := range steps {
		if done[left.Model] || left.Source != "own" {
			continue
		}
		done[left.Model] = true
		m := fit(card, slices.DeleteFunc(slices.Clone(steps), func(s timed) bool { return s.Model == left.Model }), fitted, 3)
		for _, s := range steps {
			if s.Model == left.Model {
				off = append(off, math.Abs(s.Work.seconds(card, &m)/s.Seconds-1))
			}
		}
	}
	found := accuracyOf(off)
	t.Log(found)
	if found.Steps != Stated.Steps || found.Half > Stated.Half || found.NineInTen > Stated.NineInTen {
		t.Errorf("%v; stated is: %v", found, Stated)
	}
}

// TestFit fits the constants, for whoever changes the model: run it with
// MEMORYMARK_FIT=1 and -v.
func TestFit(t *testing.T) {
	if os.Getenv("MEMORYMARK_FIT") == "" {
		t.Skip("it changes nothing: set MEMORYMARK_FIT=1 to see better constants")
	}
	steps := readTimed(t)
	t.Logf("%+v", fit(h200(t), steps, fitted, 12))
}

// fit changes one constant after the other, for as long as it helps.
func fit(card *gpu.Card, steps []timed, m model, rounds int) model {
	constants := []*float64{
		&m.launch, &m.backward, &m.call, &m.kernel, &m.recurrentStep, &m.fp32, &m.tf32, &m.half, &m.bandwidth,
		&m.attentionFP32, &m.attentionTensor, &m.forwardFP32, &m.gradientFP32, &m.convolutionTensor,
		&m.groupedFP32, &m.groupedHalf, &m.convolutionBandwidth, &m.shallow,
	}
	factors := slices.Repeat([]float64{1.2}, len(constants))
	best := loss(card, steps, &m)
	for range rounds {
		for i, c := range constants {
			before, helped := *c, false
			for _, try := range []float64{before * factors[i], before / factors[i]} {
				if *c = try; !helped && loss(card, steps, &m) < best {
					best, before, helped = loss(card, steps, &m), try, true
				}
			}
			if *c = before; !helped {
				factors[i] = 1 + (factors[i]-1)*0.6
			}
		}
	}
	return m
}

// loss is how far off the estimates are. One that is off by a factor counts
// only so much.
func loss(card *gpu.Card, steps []timed, m *model) float64 {
	sum := 0.
	for i := range steps {
		off := math.Abs(math.Log(steps[i].Work.seconds(card, m) / steps[i].Seconds))
		weight := 1.
		if steps[i].Source != "own" {
			weight = 0.5
		}
		sum += weight * min(off+2*off*off, 1.5)
	}
	return sum
}
