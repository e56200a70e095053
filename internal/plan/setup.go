package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// setup is a way to train a model on so many GPUs.
type setup struct {
	gpus     int64
	ways     int64 // in which a batch is split: GPUs that have data of their own
	chosen   []choice
	trains   Trains
	parallel *workload.Parallel // nil for one GPU
}

// choice is a change that a plan makes.
type choice struct {
	text   string                  // as people say it
	keys   map[string]string       // of a workload, with their values in JSON
	on     func(c *gpu.Card) bool  // nil if every card can do it
	kinds  []workload.ParallelKind // that it goes with, "" for one GPU; nil if with all
	trains Trains                  // "" if either
	rounds bool                    // small updates of weights are lost to rounding: of all weights it is the last resort
	policy bool                    // where parameters are sharded, it is FSDP's policy of mixed precision
}

// axis are changes of which at most one is made.
type axis struct {
	keys    []string // what is given of them stays, and so do all
	open    func(q *Question, base *workload.Workload) bool
	choices []choice
}

// axes are what can be changed.
var axes = []axis{
	{keys: []string{"precision"}, choices: []choice{
		{text: "bf16 autocast", keys: map[string]string{"precision": `"amp-bf16"`}, on: (*gpu.Card).HasBF16, policy: true},
		{text: "fp16 autocast", keys: map[string]string{"precision": `"amp-fp16"`}, on: hasNoBF16, kinds: unsharded},
		{text: "bf16 weights", keys: map[string]string{"precision": `"bf16"`}, on: (*gpu.Card).HasBF16, rounds: true},
	}},
	{keys: []string{"checkpointing"}, choices: []choice{{text: "checkpointing", keys: map[string]string{"checkpointing": "true"}}}},
	{keys: []string{"optimizer", "optimizer_impl"}, choices: []choice{
		{text: "8-bit AdamW", keys: map[string]string{"optimizer": `"adamw-8bit"`}, kinds: unsharded, trains: AllWeights},
	}},
	{keys: []string{"adapter", "quantize"}, open: takesAdapters, choices: []choice{
		{text: "LoRA of rank 16", keys: map[string]string{"adapter": lora}, kinds: adapted, trains: Adapters},
		{text: "QLoRA of rank 16", keys: map[string]string{"adapter": lora, "quantize": `"nf4-double"`}, on: (*gpu.Card).HasBF16, kinds: unsharded, trains: Adapters},
	}},
}

const lora = `{"kind":"lora","rank":16,"targets":"all-linear"}`

var (
	unsharded = []workload.ParallelKind{"", workload.DDP} // bitsandbytes and GradScaler know no DTensor
	// An adapter's optimizer has next to nothing that ZeRO-1 could share, and tensor
	// parallelism does not split PEFT's layers.
	adapted = []workload.ParallelKind{"", workload.DDP, workload.FSDP, workload.HSDP}
	sharded = []workload.ParallelKind{workload.FSDP, workload.HSDP, workload.FSDPWithTensor}
)

func hasNoBF16(c *gpu.Card) bool { return !c.HasBF16() }

func takesAdapters(q *Question, base *workload.Workload) bool { return !q.Full && !base.TakesImages() }

// setups are all ways to train on so many GPUs, those with fewer changes
// first.
func (p *planner) setups(gpus int64) []*setup {
	var out []*setup
	for _, parallel := range p.parallels(gpus) {
		for _, chosen := range p.choices() {
			if s := p.newSetup(gpus, parallel, chosen); s != nil {
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *setup) int { return a.changes() - b.changes() })
	return out
}

// choices are all combinations of what the question leaves open.
func (p *planner) choices() [][]choice {
	out := [][]choice{nil}
	for _, x := range axes {
		if slices.ContainsFunc(x.keys, p.given) || x.open != nil && !x.open(&p.q, p.base) {
			continue
		}
		for _, before := range slices.Clone(out) {
			for _, c := range x.choices {
				out = append(out, append(slices.Clone(before), c))
			}
		}
	}
	return out
}

// given reports whether the question says what a key is.
func (p *planner) given(key string) bool { _, ok := p.q.Draft[key]; return ok }

// parallels are the ways in which so many GPUs can share a step.
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
func (p *planner) newSetup(gpus int64, parallel *workload.Parallel, chosen []choice) *setup {
	s := &setup{gpus: gpus, ways: gpus, chosen: chosen, parallel: parallel}
	if p.base.Adapter != nil {
		s.trains = Adapters
	}
	for _, c := range chosen {
		if c.kinds != nil && !slices.Contains(c.kinds, s.kind()) || c.trains != "" && s.trains != "" && c.trains != s.trains {
			return nil
		}
		s.trains = cmp.Or(c.trains, s.trains)
		if c.policy && slices.Contains(sharded, s.kind()) {
			mixed := *parallel
			mixed.MixedPrecision = workload.BF16
			s.parallel = &mixed
		}
	}
	s.trains = cmp.Or(s.trains, AllWeights)
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
		n += len(c.keys)
	}
	return n
}

// lastResort reports whether it is to be taken only where nothing else fits.
func (s *setup) lastResort() bool {
	return s.trains == AllWeights && slices.ContainsFunc(s.chosen, func(c choice) bool { return c.rounds })
}

// on reports whether a card can do it.
func (s *setup) on(card *gpu.Card) bool {
	return !slices.ContainsFunc(s.chosen, func(c choice) bool { return c.on != nil && !c.on(card) })
}

// names are the changes as people say them.
func (s *setup) names() []string {
	var out []string
	if s.parallel != nil {
		out = append(out, s.parallel.Kind.Label())
	}
	for _, c := range s.chosen {
		name := c.text
		if c.policy && s.parallel != nil && s.parallel.MixedPrecision != "" {
			name = "bf16 mixed precision"
		}
		out = append(out, name)
	}
	return out
}

// String says it in a few words.
func (s *setup) String() string {
	if names := s.names(); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	return "as it is"
}

// workload is the setup with a batch for each GPU.
func (p *planner) workload(s *setup, batch, passes int64) (*workload.Workload, error) {
	return p.draft(s, batch, passes).WorkloadWithin(p.q.Effort)
}

func (p *planner) draft(s *setup, batch, passes int64) workload.Draft {
	d := maps.Clone(p.q.Draft)
	for _, c := range s.chosen {
		if c.policy && s.parallel != nil && s.parallel.MixedPrecision != "" {
			continue
		}
		for key, value := range c.keys {
			d[key] = json.RawMessage(value)
		}
	}
	if s.parallel != nil {
		d["parallel"], _ = json.Marshal(s.parallel) // it is made of texts and numbers
	}
	d["batch"], d["accumulate"] = json.RawMessage(fmt.Sprint(batch)), json.RawMessage(fmt.Sprint(passes))
	return d
}
