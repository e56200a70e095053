package study

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"memorymark/internal/evidence"
	"memorymark/internal/predict"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// recorded stands in for a GPU: it takes one cell at a time, and does to each
// what the test says.
type recorded struct {
	running atomic.Int32
	calls   atomic.Int32
	profile func(c Cell) (*Profile, error)
}

func (*recorded) Engine() evidence.Engine { return evidence.Measured }

func (r *recorded) Profile(ctx context.Context, c Cell) (*Profile, error) {
	if r.running.Add(1) > 1 {
		return nil, errors.New("two cells at the same time")
	}
	defer r.running.Add(-1)
	r.calls.Add(1)
	if r.profile != nil {
		return r.profile(c)
	}
	p, err := Predictor{}.Profile(ctx, c)
	return p, err
}

func cellsOf(t *testing.T, batches ...int) []Cell {
	t.Helper()
	var out []Cell
	for _, b := range batches {
		w := workloadtest.Parse(t, fmt.Sprintf(`{"model": "lm-small", "batch": %d, "sequence": 16, "config": {"num_layers": 1}}`, b))
		out = append(out, Cell{Workload: w, Card: workloadtest.Card(t, "h200"), Warmup: 1, Steps: 1})
	}
	return out
}

func TestRunKeepsOrder(t *testing.T) {
	cells := cellsOf(t, 5, 4, 3, 2, 1)
	var seen []int
	results, err := Run(t.Context(), Predictor{}, cells, Options{Progress: func(p RunProgress) {
		seen = append(seen, p.Done)
		if p.Total != 5 || p.Resumed != 0 || p.Elapsed <= 0 {
			t.Errorf("progress %+v", p)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Workload.Batch != int64(5-i) || !r.Fits() {
			t.Errorf("result %d is of batch %d", i, r.Workload.Batch)
		}
	}
	if !slices.Equal(seen, []int{1, 2, 3, 4, 5}) {
		t.Errorf("progress came as %v", seen)
	}
}

// What goes wrong with one cell stays there.
func TestRunGoesOn(t *testing.T) {
	cells := append(cellsOf(t, 1, 2, 3), Cell{Err: errors.New("no such cell")})
	gpu := &recorded{}
	gpu.profile = func(c Cell) (*Profile, error) {
		switch c.Workload.Batch {
		case 2:
			return nil, errors.New("the driver is gone")
		case 3:
			return &Profile{OutOfMemory: &OutOfMemory{}, Phases: []predict.Phase{{Name: "forward"}}}, nil
		}
		return Predictor{}.Profile(context.Background(), c)
	}
	results, err := Run(t.Context(), gpu, cells, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !results[0].Fits() || results[0].Engine != evidence.Measured {
		t.Errorf("first: %+v", results[0])
	}
	if results[1].Error != "the driver is gone" || results[3].Error != "no such cell" {
		t.Errorf("errors are %q and %q", results[1].Error, results[3].Error)
	}
	if r := results[2]; r.OutOfMemory == nil || r.Peak != nil || r.Phases != nil || r.Error != "" {
		t.Errorf("peaks until memory ran out are taken for those of the step: %+v", r)
	}
}

// A run that is stopped continues where it was; what failed is tried again, and
// what was kept of a cell and is gone is made again.
func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	cells := cellsOf(t, 1, 2, 3, 4)
	run := func(ctx context.Context, p Profiler, program string, o Options) ([]*Result, error) {
		j, err := OpenJournal(path, program)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		o.Journal = j
		return Run(ctx, p, cells, o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := &recorded{}
	_, err := run(ctx, first, "v1", Options{Progress: func(p RunProgress) {
		if p.Done == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || first.calls.Load() != 2 {
		t.Fatalf("stopped after %d cells with %v", first.calls.Load(), err)
	}
	cutOff(t, path)

	second := &recorded{}
	var resumed int
	results, err := run(t.Context(), second, "v1", Options{
		Kept:     func(c Cell, _ *Result) bool { return c.Workload.Batch != 1 },
		Progress: func(p RunProgress) { resumed = p.Resumed },
	})
	if err != nil || second.calls.Load() != 3 || resumed != 1 {
		t.Fatalf("went on with %d cells, %d from the journal: %v", second.calls.Load(), resumed, err)
	}
	for i, r := range results {
		if r == nil || r.Peak == nil || r.Workload != cells[i].Workload {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	for program, want := range map[string]int32{"v1": 0, "v2": 4} {
		gpu := &recorded{}
		if _, err := run(t.Context(), gpu, program, Options{}); err != nil || gpu.calls.Load() != want {
			t.Errorf("%s profiles %d cells, want %d: %v", program, gpu.calls.Load(), want, err)
		}
	}
	if _, err := run(t.Context(), Predictor{}, "v1", Options{Progress: func(p RunProgress) { resumed = p.Resumed }}); err != nil || resumed != 0 {
		t.Errorf("%d measurements were taken for predictions: %v", resumed, err)
	}
}

// cutOff adds what a killed process leaves: half a line.
func cutOff(t *testing.T, path string) {
	t.Helper()
	data := testmachine.ReadFile(t, path)
	lines := strings.SplitAfter(string(data), "\n")
	testmachine.WriteFile(t, path, string(data)+lines[0][:len(lines[0])/2])
}

// Keep runs before a result counts, and its failure ends the run.
func TestKeep(t *testing.T) {
	broken := errors.New("the disk is full")
	var lock sync.Mutex
	kept := 0
	_, err := Run(t.Context(), Predictor{}, cellsOf(t, 1, 2, 3), Options{Keep: func(c Cell, p *Profile, r *Result) error {
		lock.Lock()
		defer lock.Unlock()
		if kept++; c.Workload.Batch == 3 {
			return broken
		}
		if p.Trace == nil || r.Peak == nil {
			t.Errorf("kept %+v", r)
		}
		return nil
	}})
	if !errors.Is(err, broken) || kept == 0 {
		t.Errorf("kept %d, %v", kept, err)
	}
}

func TestGrid(t *testing.T) {
	g := Grid{Base: workload.Draft{}, Axes: []Axis{{"model", []string{"lm-small", "gpt2"}}, {"batch", []string{"1", "2", "3"}}}}
	g.Base.Set("precision", "bf16")
	var got []string
	for _, p := range g.Points() {
		got = append(got, p.Values["model"]+" "+p.Values["batch"])
		w, err := p.Draft.Workload()
		if err != nil || w.Model != p.Values["model"] || w.Precision != workload.BF16 {
			t.Errorf("%v: %+v, %v", p.Values, w, err)
		}
	}
	want := []string{"lm-small 1", "lm-small 2", "lm-small 3", "gpt2 1", "gpt2 2", "gpt2 3"}
	if !slices.Equal(got, want) || g.Size() != 6 || len(g.Base) != 1 {
		t.Errorf("points %v", got)
	}
}
