package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/change"
	"memorymark/internal/gpu"
	"memorymark/internal/recipe"
	"memorymark/internal/workload"
)

// setup is a way to train a model on a number of GPUs.
type setup struct {
	gpus     int64
	ways     int64 // in which a batch is split: GPUs that have data of their own
	chosen   []change.Row
	trains   change.Trains
	parallel *workload.Parallel // nil for one GPU
}

// sharded are the kinds of parallelism that divide parameters among GPUs.
var sharded = []workload.ParallelKind{workload.FSDP, workload.HSDP, workload.FSDPWithTensor}

// setups are all ways to train on a number of GPUs, those with fewer changes
// first.
func (p *planner) setups(gpus int64) []*setup {
	var out []*setup
	for _, parallel := range p.parallels(gpus) {
		choices := p.choices
		if p.runs != nil {
			choices = p.usual
		}
		for _, chosen := range choices() {
			if s := p.newSetup(gpus, parallel, chosen); s != nil {
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *setup) int { return a.changes() - b.changes() })
	return out
}

// choices are all combinations of changes that the question leaves open. What moves the
// edge of memory a little is no other way to train, and another optimizer would need
// another number of samples.
func (p *planner) choices() [][]change.Row {
	out := [][]change.Row{nil}
	for _, axis := range change.Open(change.Given(p.q.Draft), p.q.Full) {
		for _, before := range slices.Clone(out) {
			for _, r := range axis {
				if !r.Edge && r.Cost != change.OtherUpdates && r.Alters(p.base) {
					out = append(out, append(slices.Clone(before), r))
				}
			}
		}
	}
	return out
}

// parallels are the ways in which that many GPUs can share a step.
func (p *planner) parallels(gpus int64) []*workload.Parallel {
	if gpus == 1 {
		return []*workload.Parallel{nil}
	}
	out := []*workload.Parallel{{Kind: workload.DDP, GPUs: gpus}, {Kind: workload.ZeRO1, GPUs: gpus}, {Kind: workload.FSDP, GPUs: gpus}}
	switch {
	case gpus <= gpu.MachineGPUs:
		out = append(out, &workload.Parallel{Kind: workload.TensorParallel, GPUs: gpus})
	default:
		out = append(out,
			&workload.Parallel{Kind: workload.HSDP, GPUs: gpus, Shard: gpu.MachineGPUs},
			&workload.Parallel{Kind: workload.FSDPWithTensor, GPUs: gpus, Tensor: gpu.MachineGPUs})
	}
	return out
}

// newSetup puts choices together, nil if they do not go together.
func (p *planner) newSetup(gpus int64, parallel *workload.Parallel, chosen []change.Row) *setup {
	s := &setup{gpus: gpus, ways: gpus, chosen: chosen, parallel: parallel}
	if p.base.Adapter != nil {
		s.trains = change.Adapters
	}
	for _, c := range chosen {
		if !c.With(s.kind()) || c.Trains != "" && s.trains != "" && c.Trains != s.trains {
			return nil
		}
		s.trains = cmp.Or(c.Trains, s.trains)
		if c.Policy && slices.Contains(sharded, s.kind()) {
			mixed := *parallel
			mixed.MixedPrecision = workload.BF16
			s.parallel = &mixed
		}
	}
	s.trains = cmp.Or(s.trains, change.AllWeights)
	switch s.kind() {
	case workload.TensorParallel:
		s.ways = 1
	case workload.FSDPWithTensor:
		s.ways = gpus / parallel.Tensor
	}
	return s
}

// kind is the kind of parallelism, "" for one GPU.
func (s *setup) kind() workload.ParallelKind {
	if s.parallel == nil {
		return ""
	}
	return s.parallel.Kind
}

// anyNumber reports whether a rank takes the same however many there are: each
// has a whole model, or shares it with those of its machine.
func (s *setup) anyNumber() bool { return s.kind() == workload.DDP || s.kind() == workload.HSDP }

// sharesParameters reports whether each GPU has a part of the parameters.
func (s *setup) sharesParameters() bool {
	return s.kind() == workload.TensorParallel || slices.Contains(sharded, s.kind())
}

// changes is how many keys are not as they were asked about.
func (s *setup) changes() int {
	n := 0
	if s.parallel != nil {
		n++
	}
	for _, c := range s.chosen {
		n += c.Keys()
	}
	return n
}

// lastResort reports whether it is to be taken only where nothing else fits.
func (s *setup) lastResort() bool {
	return s.trains == change.AllWeights && slices.ContainsFunc(s.chosen, func(c change.Row) bool { return c.Rounds })
}

// on reports whether a card can do it.
func (s *setup) on(card *gpu.Card) bool {
	return !slices.ContainsFunc(s.chosen, func(c change.Row) bool { return !c.On(card) })
}

// made are the changes from what was asked about, one after the other.
func (s *setup) made() []change.Change {
	var out []change.Change
	if s.parallel != nil {
		alone := *s.parallel
		alone.MixedPrecision = ""
		out = append(out, sharing(s.parallel.Kind.Label(), &alone))
	}
	for _, c := range s.chosen {
		if c.Policy && s.parallel != nil && s.parallel.MixedPrecision != "" {
			out = append(out, sharing("bf16 mixed precision", s.parallel))
			continue
		}
		out = append(out, c.Change)
	}
	return out
}

// sharing is a change to the GPUs that share a step.
func sharing(label string, p *workload.Parallel) change.Change {
	value, _ := json.Marshal(p) // it is made of texts and numbers
	return change.Change{Label: label, Patch: workload.Draft{"parallel": value}}
}

// String says it in a few words.
func (s *setup) String() string { return textOf(s.made()) }

// textOf are changes in a few words, the split of the batch aside.
func textOf(changes []change.Change) string {
	var labels []string
	for _, c := range changes {
		if !c.Splits() {
			labels = append(labels, c.Label)
		}
	}
	if len(labels) == 0 {
		return "as it is"
	}
	return strings.Join(labels, ", ")
}

// workload is the setup with a batch for each GPU.
func (p *planner) workload(s *setup, batch, passes int64) (*workload.Workload, error) {
	if p.runs != nil {
		return p.draft(s, batch, passes).Runnable()
	}
	return p.draft(s, batch, passes).WorkloadWithin(p.q.Work)
}

func (p *planner) draft(s *setup, batch, passes int64) workload.Draft {
	d := change.Apply(p.q.Draft, s.made())
	d["batch"], d["accumulate"] = number(batch), number(passes)
	if p.runs != nil {
		return d // of which no program is written
	}
	return recipe.AsWritten(d)
}

func number(n int64) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }
