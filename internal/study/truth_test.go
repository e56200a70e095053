package study_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/snapshot"
	"memorymark/internal/study"
	"memorymark/internal/trace"
)

const truth = "../../testdata/truth/study"

// measurement is a cell that was measured, and what is predicted for it.
type measurement struct {
	cell      study.Cell
	trace     *trace.Trace // what was recorded; nil where only the result was kept
	measured  *study.Result
	predicted *study.Result
}

// Every peak of every part of every cell that was measured is predicted to the
// byte, and so is the list of the largest allocations.
func TestPredictionsAgreeWithMeasurements(t *testing.T) {
	for _, m := range measurements(t) {
		if d := firstDifference(m.measured, m.predicted); d != "" {
			t.Errorf("%s: %s", m.cell.Name, d)
		}
	}
}

// firstDifference says where a prediction first departs from a measurement, ""
// if nowhere. Lists are compared as far as they were measured, and what peaks
// are made of only where the recording was kept.
func firstDifference(measured, predicted *study.Result) string {
	if len(measured.Phases) != len(predicted.Phases) {
		return fmt.Sprintf("%d parts were measured, %d predicted", len(measured.Phases), len(predicted.Phases))
	}
	for i, m := range measured.Phases {
		p := predicted.Phases[i]
		if m.Name != p.Name || m.Peak != p.Peak {
			return fmt.Sprintf("%s peaks at %+v, predicted %s at %+v", m.Name, m.Peak, p.Name, p.Peak)
		}
		if len(m.Made) > 0 && (!slices.Equal(m.Made, p.Made) || m.Begin != p.Begin || m.End != p.End || m.WeightCopies != p.WeightCopies) {
			return fmt.Sprintf("%s is made of\n%+v, predicted\n%+v", m.Name, m, p)
		}
	}
	for i, m := range measured.Largest {
		if i == len(predicted.Largest) {
			return fmt.Sprintf("largest allocation %d is not predicted: %s", i+1, allocationText(m))
		}
		if p := predicted.Largest[i]; m.Bytes != p.Bytes || m.Count != p.Count || m.Category != p.Category {
			return fmt.Sprintf("largest allocation %d is %s, predicted %s", i+1, allocationText(m), allocationText(p))
		}
	}
	return ""
}

func allocationText(a study.Allocation) string {
	return fmt.Sprintf("%d × %v %s %v", a.Count, a.Bytes, a.Category, a.Origins)
}

// Stacks end where the prober calls the model or the optimizer.
func TestStacksLeaveTheProberOut(t *testing.T) {
	stacks, ofModel := 0, 0
	for _, m := range measurements(t) {
		for _, a := range m.measured.Largest {
			for _, o := range a.Origins {
				for i, f := range o.Frames {
					if i > 0 && f.IsProber() {
						t.Fatalf("%s: %v %s has %s on its stack", m.cell.Name, a.Bytes, a.Category, f)
					}
				}
				if len(o.Frames) > 0 {
					stacks++
				}
				if slices.ContainsFunc(o.Frames, func(f trace.Frame) bool { return strings.HasSuffix(f.File, "/lm.py") }) {
					ofModel++
				}
			}
		}
	}
	t.Logf("%d stacks, %d of the model", stacks, ofModel)
	if ofModel == 0 || ofModel == stacks {
		t.Error("there should be stacks of the model, and of the optimizer")
	}
}

// measurements are read and predicted once: that takes seconds.
func measurements(t *testing.T) []measurement {
	t.Helper()
	all, err := readMeasurements()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var readMeasurements = sync.OnceValues(func() ([]measurement, error) {
	f, err := os.Open(filepath.Join(truth, "results.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	card, err := gpu.Find("h200")
	if err != nil {
		return nil, err
	}
	var out []measurement
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := measurement{measured: &study.Result{}}
		if err := json.Unmarshal(lines.Bytes(), m.measured); err != nil {
			return nil, err
		}
		w := m.measured.Workload
		m.cell = study.Cell{Name: study.CellName(w), Workload: w, Card: card, Warmup: 2, Steps: 1}
		if err := m.readRecording(); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, errors.New("nothing was measured")
	}
	return out, predictAll(out)
})

// readRecording works the result out of the recording again, if that was kept.
func (m *measurement) readRecording() error {
	f, err := os.Open(filepath.Join(truth, m.cell.Name+".pickle.xz"))
	if errors.Is(err, fs.ErrNotExist) && m.measured.Recorded() {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := snapshot.Read(f, snapshot.Limits{})
	if err != nil {
		return err
	}
	m.trace = s.Devices[0]
	p := &study.Profile{Trace: m.trace, StepSeconds: []float64{*m.measured.StepSeconds}, Provenance: *m.measured.Provenance}
	for _, ph := range m.measured.Phases {
		p.Phases = append(p.Phases, predict.Phase{Name: ph.Name, Usage: allocator.Usage{
			PeakRequested: ph.Requested, PeakAllocated: ph.Allocated, PeakReserved: ph.Reserved,
		}})
	}
	m.measured = study.NewResult(m.cell, evidence.Measured, p)
	return nil
}

func predictAll(all []measurement) error {
	cells := make([]study.Cell, len(all))
	for i := range all {
		cells[i] = all[i].cell
	}
	results, err := study.Run(context.Background(), study.Predictor{}, cells, study.Options{})
	if err != nil {
		return err
	}
	for i, r := range results {
		if r.Error != "" {
			return errors.New(r.Error)
		}
		all[i].predicted = r
	}
	return nil
}
