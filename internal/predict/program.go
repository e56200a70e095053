package predict

import (
	"fmt"
	"slices"

	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// program is a training program: the model is built, a batch is made, and
// steps run. Its requests are what it asks of the allocator.
type program struct {
	t     *torch.Torch
	w     *workload.Workload
	model *models.Model
	head  *models.Head
	opt   *torch.Optimizer
	loop  loop
	// scaler scales the loss, nil where none does.
	scaler    *torch.GradScaler
	shapes    []batchShape // of all batches, empty where all are alike
	fed       int          // how many of those there were
	expected  int          // events, about; 0 if it is not known
	manyCards bool         // it tells of other cards, too
	late      bool         // NCCL's watchdog, when DDP rebuilds its buckets
	rank      int64        // which of those that share parameters this is
	owners    Owners       // of the parameters that ranks share; nil if they are not known yet

	// modelEvents and inputEvents are how many events there were once the
	// model was built, and once the batch was there.
	modelEvents, inputEvents int
	// stepEnds are the events at which each step ended.
	stepEnds []int
	// alike is the first step, counted from 0, that asks for and frees exactly what
	// the one before did, as all after it do; 0 for none.
	alike int
	parts parts    // of what the last step that ran asked of the card
	drawn []Timing // of steps whose lengths were drawn

	builder   Builder          // of the model, nil for models.New
	rankKinds []torch.RankKind // of those that share parameters, nil if all are alike

	parameters int64      // elements
	primed     bool       // there is no first step, only what it would leave
	trained    int        // parameters that had gradients in the latest step of a plain loop
	everyPass  bool       // none stands for others
	rebuilt    bool       // DDP's buckets, if there are any, before the last step that ran
	brief      bool       // it ends before a step that would ask for the same as the one before
	spans      []span     // the phase of each event
	allLives   []life     // its allocations, once they were asked for
	open       string     // the mark that the latest span has begun, "" for none
	began      torch.Work // what had been done when the latest span began
}

// maxGrown limits for how many events memory is allocated ahead.
const maxGrown = 2 << 20

// maxParameters is more than fits any card a hundred times over.
const maxParameters = 1e12

// run builds the model, runs steps of it and ends.
func (p *program) run(d torch.Device, steps int, e *workbudget.Budget) (*program, error) {
	if err := p.start(d, steps, e); err != nil {
		return nil, err
	}
	p.end()
	return p, nil
}

// start builds the model and runs steps of it; more may follow.
func (p *program) start(d torch.Device, steps int, e *workbudget.Budget) error {
	if err := p.build(d, e); err != nil {
		return err
	}
	if p.parameters = p.t.ParameterCount(); p.parameters > maxParameters {
		return fmt.Errorf("the model has %.3g parameters; the limit for one card is %.0g", float64(p.parameters), float64(maxParameters))
	}
	p.train(steps)
	return nil
}

// end ends the program; its requests stay.
func (p *program) end() {
	p.t.End()
	if p.model.End != nil {
		p.model.End()
	}
	p.model, p.opt, p.loop, p.scaler = nil, nil, nil, nil
}

// train runs steps of the model that was built.
func (p *program) train(steps int) {
	w := p.w
	p.modelEvents = p.events()
	if p.opt = p.model.Optimizer; p.opt == nil {
		p.opt = p.t.NewOptimizer(torch.OptimizerNamed(string(w.Optimizer)), impls[w.OptimizerImpl])
	}
	switch {
	case w.Parallel == nil:
	case w.Parallel.Kind == workload.ZeRO1:
		p.opt.Partition(w.Parallel.GPUs, p.rank)
		p.rankKinds = p.opt.RankKinds()
	case isPipeline(w):
		p.rankKinds = stageKinds(w.Parallel)
	default:
		p.rankKinds = p.t.RankKinds()
	}
	p.begin(feeding)
	if w.Varied() && p.shapes == nil {
		p.shapes = shapesOf(w, steps, p.t.Spend)
	}
	p.everyPass = p.everyPass || w.Varied()
	p.loop = newLoop(p)
	p.inputEvents = p.events()
	if p.primed {
		p.startPrimed()
		return
	}
	for i := 0; i < steps; i++ {
		if i == 2 && p.brief && p.settled() {
			break
		}
		if i < 2 || w.Varied() || !p.repeat() {
			p.step()
		} else {
			p.stepEnds = append(p.stepEnds, p.events())
		}
		if w.Varied() && i < steps-1 { // the last one is the longest there can be
			p.drawn = append(p.drawn, p.timing())
			if p.drewEnough() {
				p.shapes = slices.Concat(p.shapes[:p.fed], p.shapes[len(p.shapes)-w.Accumulate:])
				steps = i + 2 // with the longest one
			}
		}
		if i == 0 { // the others are about as long
			t := p.t.Trace()
			t.Events = slices.Grow(t.Events, min((steps-1)*(len(t.Events)-p.inputEvents), maxGrown))
		}
	}
}

// step runs a step.
func (p *program) step() {
	p.parts, p.rebuilt = parts{}, p.t.BucketsRebuilt()
	p.loop.step()
	p.countPart()
	p.stepEnds = append(p.stepEnds, p.events())
}

// build builds the model on a device.
func (p *program) build(d torch.Device, e *workbudget.Budget) error {
	w := p.w
	p.t = torch.New(d)
	p.t.Budget = e
	if p.manyCards {
		p.t.KeepQuestions()
	}
	p.t.Expect(min(p.expected, maxGrown))
	p.begin(building)
	p.t.Version = w.Libraries().Torch
	p.t.TF32 = w.Precision == workload.TF32
	if w.Parallel != nil {
		p.t.Ranks = w.Parallel.GPUs
	}
	p.t.Name = w.Config.Architecture
	if w.Program == nil {
		var err error
		if _, p.head, err = models.Find(w.Config); err != nil {
			return err
		}
	}
	return p.buildModel(d)
}

// rebuilds reports whether the last step is not yet as all after it are: DDP
// rebuilt its buckets in it, even if they came out as they were.
func (p *program) rebuilds() bool { return p.rebuilt != p.t.BucketsRebuilt() }

// settled reports whether the next step would be the last one again.
func (p *program) settled() bool {
	return !p.rebuilds() && !p.w.Varied() && p.t.Repeatable(p.stepEnds[len(p.stepEnds)-2], p.stepEnds[len(p.stepEnds)-1])
}

// repeat runs the last step again: from the second one on, all are alike.
func (p *program) repeat() bool {
	if p.rebuilds() {
		return false
	}
	from, to := p.stepEnds[len(p.stepEnds)-2], p.stepEnds[len(p.stepEnds)-1]
	ok, closed := p.t.Repeat(from, to)
	if !ok {
		return false
	}
	if closed && p.alike == 0 {
		p.alike = len(p.stepEnds)
	}
	for _, s := range p.spans {
		if s.from >= from && s.from < to {
			p.spans = append(p.spans, span{s.phase, s.from + to - from})
		}
	}
	return true
}

// partEnds are the events at which the model, the batch and each step end.
func (p *program) partEnds() []int {
	return append([]int{p.modelEvents, p.inputEvents}, p.stepEnds...)
}

// requests are what the program asked of the allocator.
func (p *program) requests() *trace.Trace { return p.t.Trace() }

func (p *program) events() int { return len(p.t.Trace().Events) }

var impls = map[workload.Impl]torch.Impl{
	workload.Foreach: torch.Foreach, workload.Fused: torch.Fused, workload.Loop: torch.Loop,
}

// call calls the model.
func (p *program) call(batch *models.Batch) models.Output {
	return p.wrapped(func() models.Output { return p.model.Forward(p.t, batch) })
}

// wrapped calls a model that parallelism is wrapped around.
func (p *program) wrapped(forward func() models.Output) (out models.Output) {
	p.t.Call(func() []torch.Value {
		out = forward()
		return []torch.Value{out.Loss, out.Logits}
	})
	if findsUnused(p.w) {
		return out.Sunk(p.t, p.cachesTuples())
	}
	return out
}

func (p *program) cachesTuples() bool { return models.CachesTuples(p.w.Config, p.w.Libraries()) }

// lossOf is the model's own loss, or the mean of its logits, also where it computes none of
// labels (as the prober's user.py has it).
func (p *program) lossOf(out models.Output) torch.X {
	if p.w.Loss == workload.MeanLogits || out.Loss == (torch.Value{}) {
		return p.t.Mean(out.Logits.Borrow())
	}
	return out.Loss.Borrow()
}

// castType is what autocast casts to, none for a step without it.
func (p *program) castType() torch.DType {
	switch p.w.Precision {
	case workload.AMPBF16:
		return torch.BFloat16
	case workload.AMPFP16:
		return torch.Float16
	default:
		return torch.NoDType
	}
}
