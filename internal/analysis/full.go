package analysis

import (
	"fmt"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/workload"
)

// FullFineTuning is what training all weights would do where an adapter is
// trained.
type FullFineTuning struct {
	OptimalBatch int64 `json:"optimal_batch_size"` // 0: not even the smallest trains
	Throughput
	// Needs is what the smallest batch takes, where it does not fit.
	Needs int64 `json:"needs_bytes,omitempty"`
}

// fullFineTuning looks at the same workload without its adapter.
func (p *planner) fullFineTuning() (*FullFineTuning, error) {
	w := *p.w
	w.Adapter, w.Quantize = nil, workload.NotQuantized
	with := plannerOf(p.Request, &w, p.Card)
	largest, err := with.largest(with.run)
	if err != nil {
		return nil, err
	}
	r, err := with.look(max(largest, with.unit()))
	if err != nil {
		return nil, err
	}
	if largest == 0 {
		return &FullFineTuning{Needs: r.Reserved}, nil
	}
	return &FullFineTuning{OptimalBatch: largest, Throughput: r.Throughput}, nil
}

// explainCost says what training an adapter takes and costs at the batch that is
// recommended.
func (a *Answer) explainCost() {
	if a.FullFineTuning == nil || a.Bill == nil || a.Bill.TokensPerSecond == 0 {
		return
	}
	const million = 1e6
	text := fmt.Sprintf("a million tokens take %s at batch %d", figure.About(int64(million/a.Bill.TokensPerSecond*million)), a.Bill.Batch)
	if cost := a.Bill.PerMillionTokens; cost != nil {
		text += fmt.Sprintf(", and $%.2f at $%.2f an hour", *cost, *a.PricePerHour)
	}
	a.note("cost", "%s", text)
}

// explainFull compares an adapter with full fine-tuning.
func (a *Answer) explainFull(smallest int64) {
	const about = "full fine-tuning"
	switch f := a.FullFineTuning; {
	case f == nil:
	case f.OptimalBatch == 0:
		a.note(about, "does not fit: batch %d needs %v, and PyTorch may use %v", smallest, bytesize.Bytes(f.Needs), bytesize.Bytes(a.Limit))
	case f.TokensPerSecond > 0:
		a.note(about, "trains up to batch %d, %s tokens a second", f.OptimalBatch, figure.Count(int(f.TokensPerSecond)))
	default:
		a.note(about, "trains up to batch %d", f.OptimalBatch)
	}
}
