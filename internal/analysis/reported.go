package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/search"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Recorded is a measured answer, as a file of JSON keeps it.
type Recorded struct {
	Engine     evidence.Engine `json:"engine"`
	Device     string          `json:"device"`
	GPUName    string          `json:"gpu_name"`
	Limit      int64           `json:"limit_bytes"`
	Largest    int64           `json:"optimal_batch_size"`
	Bounded    bool            `json:"bounded"`
	Probes     []Probe         `json:"probes"`
	Provenance struct {
		PyTorch      string          `json:"pytorch"`
		Transformers string          `json:"transformers"`
		Workload     json.RawMessage `json:"workload"`
	} `json:"provenance"`
}

// Rows says how far off predictions of a measured answer are, in rows that tell nothing of who
// measured: no id, name or path. The workload is described by its kind, the card by its model.
func (r *Recorded) Rows(source string, work *workbudget.Budget) ([]evidence.Row, error) {
	if r.Engine != evidence.Measured || r.Device != "cuda" {
		return nil, fmt.Errorf("this is no answer that was measured on a CUDA GPU (its engine is %q, its device %q)", r.Engine, r.Device)
	}
	w, err := r.workload()
	if err != nil {
		return nil, err
	}
	card, err := gpu.Find(r.GPUName)
	if err != nil {
		return nil, fmt.Errorf("%w; only cards of the catalog are predicted", err)
	}
	c := comparison{recorded: r, w: w, card: card, work: work, row: evidence.Row{
		Source: source, Card: card.ID, PyTorch: evidence.Release(r.Provenance.PyTorch), Transformers: evidence.Release(r.Provenance.Transformers),
	}}
	for i := range r.Probes {
		if err := c.addProbe(&r.Probes[i]); err != nil {
			return nil, err
		}
	}
	if err := c.addLargest(); err != nil {
		return nil, err
	}
	if len(c.rows) == 0 {
		return nil, errors.New("no batch of it was confirmed or timed, so there is nothing to compare")
	}
	return c.rows, nil
}

// workload is what was measured, with the libraries that measured it if these are modelled.
func (r *Recorded) workload() (*workload.Workload, error) {
	draft, err := workload.ParseDraft(r.Provenance.Workload)
	if err != nil {
		return nil, err
	}
	w, err := draft.Workload()
	if err != nil || w.Versions != nil {
		return w, err
	}
	draft.Set("versions", fmt.Sprintf(`{"torch": %q, "transformers": %q}`, evidence.Release(r.Provenance.PyTorch), evidence.Release(r.Provenance.Transformers)))
	if same, err := draft.Workload(); err == nil {
		return same, nil
	}
	return w, nil // the row says with which versions it was measured
}

// comparison collects the rows of an answer.
type comparison struct {
	recorded *Recorded
	w        *workload.Workload
	card     *gpu.Card
	work     *workbudget.Budget
	row      evidence.Row // what all rows say
	rows     []evidence.Row
}

func (c *comparison) add(what, recording string, share float64) {
	row := c.row
	row.Comparison, row.Recording, row.SignedError = what, recording, share
	c.rows = append(c.rows, row)
}

// addProbe compares the peaks of a batch that had a process to itself, and the time of one that
// was timed.
func (c *comparison) addProbe(p *Probe) error {
	if !p.Success || p.Purpose != Confirming && p.Purpose != Timing || len(p.Steps) == 0 {
		return nil
	}
	w := *c.w.WithLimit(bytesize.Bytes(c.recorded.Limit))
	w.Batch = p.Batch
	predicted, err := predict.Predict(&w, c.card, predict.Options{Budget: c.work})
	if err != nil {
		return err
	}
	c.row.Parameters = predicted.Parameters
	if p.Purpose == Timing {
		if p.SecondsPerStep > 0 && predicted.StepSeconds > 0 {
			c.add("step time, reported", kindOf(&w), predicted.StepSeconds/p.SecondsPerStep-1)
		}
		return nil
	}
	var allocated, reserved float64
	for i, s := range p.Steps[:min(len(p.Steps), len(predicted.Steps))] {
		allocated = farther(allocated, int64(predicted.Steps[i].PeakAllocated), s.PeakAllocated)
		reserved = farther(reserved, int64(predicted.Steps[i].PeakReserved), s.PeakReserved)
	}
	c.add("peak allocated, reported", kindOf(&w), allocated)
	c.add("peak reserved, reported", kindOf(&w), reserved)
	return nil
}

// addLargest compares the largest batch, if the next one was seen to fail: of multiples, or within
// bounds, it may be another.
func (c *comparison) addLargest() error {
	next := func(p Probe) bool { return p.Batch == c.recorded.Largest+1 && !p.Success }
	if c.recorded.Largest < 1 || !slices.ContainsFunc(c.recorded.Probes, next) {
		return nil
	}
	w := *c.w.WithLimit(bytesize.Bytes(c.recorded.Limit))
	found, err := predict.NewBatches(&w, c.card, c.work).Largest(search.Options{})
	if err != nil {
		return err
	}
	w.Batch = c.recorded.Largest
	c.add("largest batch, reported", kindOf(&w), float64(found.Largest)/float64(w.Batch)-1)
	return nil
}

// farther is the error of an amount, or the one before if that is larger.
func farther(before float64, have, want int64) float64 {
	if share := float64(have)/float64(want) - 1; want > 0 && math.Abs(share) > math.Abs(before) {
		return share
	}
	return before
}

// kindOf describes a workload by what counts for memory: not by names that people gave.
func kindOf(w *workload.Workload) string {
	parts := []string{w.Config.ModelType}
	if m, err := workload.FindModel(w.Model); err == nil {
		parts[0] = m.ID
	}
	add := func(holds bool, format string, args ...any) {
		if holds {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(true, "b%d", w.Batch)
	add(w.TakesImages(), "i%d", w.Image)
	add(!w.TakesImages(), "s%d", w.Sequence)
	add(true, "%s_%s", w.Precision, w.Optimizer)
	add(w.Phase != workload.Train, "%s", w.Phase)
	if w.Adapter != nil {
		add(true, "lora%d", w.Adapter.Rank)
	}
	add(w.Quantize != workload.NotQuantized, "%s", w.Quantize)
	add(w.Checkpointing, "ckpt")
	add(w.Accumulate > 1, "acc%d", w.Accumulate)
	add(w.Loop.Name != "" && w.Loop.Name != workload.PlainLoop, "%s", w.Loop.Name)
	if w.Parallel != nil {
		add(true, "%s%d", w.Parallel.Kind, w.Parallel.GPUs)
	}
	return strings.Join(parts, "_")
}
