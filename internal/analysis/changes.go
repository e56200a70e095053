package analysis

import (
	"slices"
	"strings"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Change is what a change, or several together, would do.
type Change struct {
	Name         string `json:"change"` // as "precision bf16", or "precision bf16 + checkpointing"
	OptimalBatch int64  `json:"optimal_batch_size"`
	Throughput
	Error string `json:"error,omitempty"` // why it cannot be made
}

// lever is something that people can change without changing their model.
type lever struct {
	key, value string
	make       func(w *workload.Workload) bool // false if it is so already
	on         func(c *gpu.Card) bool          // nil if every card can do it
}

func (l lever) String() string { return strings.TrimSpace(l.key + " " + l.value) }

// levers begin with those that cost nothing in quality.
var levers = []lever{
	precisionLever(workload.AMPBF16, (*gpu.Card).HasBF16),
	precisionLever(workload.AMPFP16, func(c *gpu.Card) bool { return !c.HasBF16() }),
	precisionLever(workload.BF16, (*gpu.Card).HasBF16),
	{key: "checkpointing", make: func(w *workload.Workload) bool { return setTo(&w.Checkpointing, true) }},
	{key: "optimizer_impl", value: "fused", make: func(w *workload.Workload) bool {
		return w.HasFused() && setTo(&w.OptimizerImpl, workload.Fused)
	}},
	{key: "optimizer", value: "sgd", make: func(w *workload.Workload) bool {
		return w.Optimizer != workload.NoOptimizer && setTo(&w.Optimizer, workload.SGD)
	}},
	{key: "expandable_segments", make: func(w *workload.Workload) bool { return setTo(&w.ExpandableSegments, true) }},
}

// adapterLevers are tried where no lever helps, nor all of them together:
// training less than all weights is another training.
var adapterLevers = []lever{
	{key: "lora", value: "16", make: addLoRA},
	{key: "lora", value: "16 + quantize nf4-double", on: (*gpu.Card).HasBF16, make: func(w *workload.Workload) bool {
		w.Quantize, w.Precision = workload.NF4Double, workload.AMPBF16
		return w.Parallel == nil && addLoRA(w)
	}},
	{key: "quantize", value: "nf4-double", on: (*gpu.Card).HasBF16, make: func(w *workload.Workload) bool {
		w.Precision = workload.AMPBF16
		return w.Adapter != nil && !w.Adapter.DoRA && w.Parallel == nil && setTo(&w.Quantize, workload.NF4Double)
	}},
}

// addLoRA trains adapters of all linear layers instead of the weights of a
// model of text.
func addLoRA(w *workload.Workload) bool {
	if w.Adapter != nil || w.TakesImages() {
		return false
	}
	w.Adapter = &workload.Adapter{Kind: workload.LoRA, Rank: 16, Targets: workload.Targets{workload.AllLinear}}
	return true
}

func precisionLever(to workload.Precision, on func(*gpu.Card) bool) lever {
	return lever{key: "precision", value: string(to), on: on, make: func(w *workload.Workload) bool { return setTo(&w.Precision, to) }}
}

func setTo[T comparable](field *T, value T) bool {
	changed := *field != value
	*field = value
	return changed
}

// changed is the workload with some levers moved, nil if one of them is so
// already, or the card cannot do it.
func (p *planner) changed(moved []lever) *workload.Workload {
	w := *p.w
	for _, l := range moved {
		if l.on != nil && !l.on(p.Card) || !l.make(&w) {
			return nil
		}
	}
	return &w
}

// change says what some levers would do, nil if they cannot be moved.
func (p *planner) change(moved ...lever) *Change {
	w := p.changed(moved)
	if w == nil {
		return nil
	}
	c := &Change{Name: nameOf(moved)}
	with := plannerOf(p.Request, w, p.Card)
	var err error
	if c.OptimalBatch, err = with.largest(with.run); err == nil && c.OptimalBatch > 0 {
		var r Result
		r, err = with.look(c.OptimalBatch)
		c.Throughput = r.Throughput
	}
	if err != nil {
		c.Error = err.Error()
	}
	return c
}

func nameOf(moved []lever) string {
	names := make([]string, len(moved))
	for i, l := range moved {
		names[i] = l.String()
	}
	return strings.Join(names, " + ")
}

// single says what each single change would do.
func (p *planner) single() []Change {
	var out []Change
	for _, l := range levers {
		if c := p.change(l); c != nil {
			out = append(out, *c)
		}
	}
	return out
}

// mostTogether is how many changes are tried together.
const mostTogether = 4

// leastSets are the smallest sets of changes with which a batch trains: every
// single one that does, else every pair, and so on. It is empty if no set does.
func (p *planner) leastSets(batch int64) []Change {
	if all := p.changed(p.strongest()); all != nil {
		if s, err := p.runner(all).Simulate(batch); err == nil && !s.Fits() {
			return p.withAdapters(batch) // and an error says that they do not all go together
		}
	}
	var out []Change
	for size := 1; size <= mostTogether && len(out) == 0; size++ {
		for moved := range combinations(levers, size) {
			w := p.changed(moved)
			if w == nil || !p.runner(w).FitsWithin(batch, p.limit()) {
				continue
			}
			if c := p.change(moved...); c.Error == "" {
				out = append(out, *c)
			}
		}
	}
	return out
}

// withAdapters are the adapters with which a batch trains that nothing else
// makes fit, alone or else with checkpointing.
func (p *planner) withAdapters(batch int64) []Change {
	checkpointing := levers[slices.IndexFunc(levers, func(l lever) bool { return l.key == "checkpointing" })]
	for _, more := range [][]lever{nil, {checkpointing}} {
		var out []Change
		for _, l := range adapterLevers {
			moved := append([]lever{l}, more...)
			if w := p.changed(moved); w == nil || !p.runner(w).FitsWithin(batch, p.limit()) {
				continue
			}
			if c := p.change(moved...); c.Error == "" {
				out = append(out, *c)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// strongest are all levers that can be moved, of each key the last: the one
// that saves the most.
func (p *planner) strongest() []lever {
	var out []lever
	for _, l := range levers {
		if p.changed([]lever{l}) == nil {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].key == l.key {
			out = out[:last]
		}
		out = append(out, l)
	}
	return out
}

// combinations yields the sets of so many levers that move different keys, in
// order.
func combinations(of []lever, size int) func(yield func([]lever) bool) {
	var extend func(chosen, rest []lever, yield func([]lever) bool) bool
	extend = func(chosen, rest []lever, yield func([]lever) bool) bool {
		if len(chosen) == size {
			return yield(slices.Clone(chosen))
		}
		for i, l := range rest {
			if slices.ContainsFunc(chosen, func(c lever) bool { return c.key == l.key }) {
				continue
			}
			if !extend(append(chosen, l), rest[i+1:], yield) {
				return false
			}
		}
		return true
	}
	return func(yield func([]lever) bool) { extend(nil, of, yield) }
}
