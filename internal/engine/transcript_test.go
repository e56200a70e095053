package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/engine"
	"memorymark/internal/measure"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// limitCase is a largest batch that was measured before any of this was
// written: testdata/truth/largest-batch.jsonl.
type limitCase struct {
	model   string
	limit   float64
	largest int64
}

func (c limitCase) file() string { return fmt.Sprintf("%s-%v.jsonl", c.model, c.limit) }

func (c limitCase) workload(t *testing.T) *workload.Workload {
	t.Helper()
	limit, err := bytesize.Parse(fmt.Sprintf("%vGiB", c.limit)) // as --limit does, which rounds to bytes
	if err != nil {
		t.Fatal(err)
	}
	w := workloadtest.Parse(t, fmt.Sprintf(`{"model": %q, "limit_gib": %.17g}`, c.model, float64(limit)/float64(bytesize.GiB)))
	return w
}

// limitCases are the truth's cases of whole training steps in fp32.
func limitCases(t *testing.T) []limitCase {
	t.Helper()
	f, err := os.Open("../../testdata/truth/largest-batch.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []limitCase
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			ID       string
			Measured struct {
				Largest int64 `json:"largest_batch"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		model, rest, _ := strings.Cut(line.ID, "_max")
		limit, how, _ := strings.Cut(rest, "_")
		if x, err := strconv.ParseFloat(limit, 64); err == nil && strings.HasSuffix(how, "fp32_adamw_train_labels") {
			out = append(out, limitCase{model, x, line.Measured.Largest})
		}
	}
	if len(out) != 9 {
		t.Fatalf("found %d cases, want 9", len(out))
	}
	return out
}

// checkMeasured holds an answer to the truth and to what was promised of it.
func checkMeasured(t *testing.T, c limitCase, a *analysis.Answer) {
	t.Helper()
	if a.OptimalBatch != c.largest || a.Engine != "measured" {
		t.Errorf("%s: %s %d, want %d", c.file(), a.Engine, a.OptimalBatch, c.largest)
	}
	confirmed := make(map[int64]bool)
	searched := 0
	for _, p := range a.Probes {
		if p.Purpose == "confirm" {
			searched++
			confirmed[p.Batch] = p.Success && len(p.Steps) >= 3
		}
	}
	if next, tried := confirmed[c.largest+1]; !confirmed[c.largest] || next || !tried || searched > 6 {
		t.Errorf("%s: %d probes, of which trained %v", c.file(), searched, confirmed)
	}
	if f := a.Predicted; f == nil || f.ErrorPercent > 1 || f.ErrorPercent < -1 {
		t.Errorf("%s: the prediction was off: %+v", c.file(), f)
	}
}

// TestTranscripts replays what a GPU said: the answer must be the truth, in
// few probes.
func TestTranscripts(t *testing.T) {
	for _, c := range limitCases(t) {
		f, err := os.Open(filepath.Join("testdata/transcripts", c.file()))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w := c.workload(t)
		card := workloadtest.Card(t, "h200")
		r := analysis.Request{Workload: w, Card: card}
		s, err := openTranscript(context.Background(), f, measure.SessionOptions{Device: "cuda", Workload: w, Spares: engine.Spares(r)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var events []engine.MeasuringEvent
		a, err := engine.Measure(context.Background(), r, engine.Measurement{Session: s, NoTiming: true, Progress: func(e engine.MeasuringEvent) { events = append(events, e) }})
		if err != nil {
			t.Errorf("%s: %v", c.file(), err)
			continue
		}
		checkMeasured(t, c, a)
		if len(events) == 0 || events[0].Kind != engine.Ready || a.CurrentMemory == 0 || a.Savings != nil {
			t.Errorf("%s: %d events, %+v", c.file(), len(events), a.Current)
		}
	}
}

// TestTimedTranscript replays a whole question, with speeds (of batch 40, which is no longer
// asked for, the recording was cut): the knee is found
// and the speedup is that of the steps, not of the batches.
func TestTimedTranscript(t *testing.T) {
	f, err := os.Open("testdata/transcripts/gpt2-timed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := workloadtest.Parse(t, `{"model": "gpt2", "limit_gib": 22.1}`)
	s, err := openTranscript(context.Background(), f, measure.SessionOptions{Device: "cuda", Workload: w})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a, err := engine.Measure(context.Background(), analysis.Request{Workload: w, Question: analysis.Question{GlobalBatch: 512, PricePerHour: new(2.0)}}, engine.Measurement{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	// Samples a second at 28 and 32 are 375 and 384, at best 402.
	if a.OptimalBatch != 92 || a.Recommended != 32 || a.Speedup != 1.16 || a.SpeedupBasis != "measured" {
		t.Errorf("largest %d, recommended %d, %.2f × as fast", a.OptimalBatch, a.Recommended, a.Speedup)
	}
	if a.Savings == nil || *a.Savings < 54 || *a.Savings > 56 || a.Accumulation == nil || a.Accumulation.MicroBatch != 64 {
		t.Errorf("saves %v, accumulates %+v", a.Savings, a.Accumulation)
	}
	if l := a.MemoryLine; l == nil || l.Fixed <= 0 || l.PerSample <= 0 {
		t.Errorf("the memory line is %+v", l)
	}
}

// TestUnfinished: what is known is in the error.
func TestUnfinished(t *testing.T) {
	c := limitCases(t)[0]
	text := testmachine.ReadFile(t, filepath.Join("testdata/transcripts", c.file()))
	// The GPU is lost at the second probe.
	lost := strings.Replace(string(text), `"class":"out_of_memory"`, `"class":"other"`, 1)
	w := c.workload(t)
	s, err := openTranscript(context.Background(), strings.NewReader(lost), measure.SessionOptions{Device: "cuda", Workload: w, Spares: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = engine.Measure(context.Background(), analysis.Request{Workload: w}, engine.Measurement{Session: s})
	var early *engine.UnfinishedError
	if !errors.As(err, &early) || early.Survived != c.largest || len(early.Probes) == 0 {
		t.Errorf("%v", err)
	}
}
