// Package predict turns a workload into what its training step will take:
// peaks, their breakdown by cause, and the largest batch that trains. It runs
// the model on a symbolic PyTorch (package torch) and the trace of that on a
// simulated allocator.
package predict

import (
	"fmt"
	"slices"

	"memorymark/internal/effort"
	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// Process is a training process: the model is built, a batch is made, and
// steps run. Its trace is what the allocator is asked for.
type Process struct {
	t     *torch.Torch
	w     *workload.Workload
	model *models.Model
	head  *models.Head
	opt   *torch.Optimizer
	loop  loop
	// scaler scales the loss, nil where nobody does.
	scaler    *torch.GradScaler
	shapes    []batchShape // of all batches, empty where all are alike
	fed       int          // how many of those there were
	expected  int          // events, about; 0 if it is not known
	manyCards bool         // it tells of other cards, too
	late      bool         // NCCL's watchdog, when DDP rebuilds its buckets
	rank      int64        // which of those that share parameters this is
	homes     Homes        // of the parameters that ranks share; nil if they are not known yet

	// ModelEvents and InputEvents are how many events there were once the
	// model was built, and once the batch was there.
	ModelEvents, InputEvents int
	// Steps are the events at which each step ended.
	Steps []int
	// alike is the first step, counted from 0, that asks for and frees exactly what
	// the one before did, as all after it do; 0 for none.
	alike int
	// StepWork is what the last step asked of the card, or the mean of those
	// whose lengths were drawn.
	StepWork torch.Work
	parts    parts // of what the last step that ran asked of the card

	builder   Builder          // of the model, nil for models.New
	rankKinds []torch.RankKind // of those that share parameters, nil if all are alike

	parameters int64      // elements
	primed     bool       // there is no first step, only what it would leave
	trained    int        // parameters that had gradients in the latest step of a plain loop
	everyPass  bool       // none stands for others
	rebuilt    bool       // DDP's buckets, if there are any, before the last step that ran
	brief      bool       // it ends before a step that would ask for the same as the one before
	spans      []span     // what was going on, by event
	allLives   []life     // its allocations, once somebody asked
	open       string     // the mark that the latest span has begun, "" for none
	began      torch.Work // what had been done when the latest span began
}

// mostGrown is for how many events room is made ahead.
const mostGrown = 2 << 20

// maxParameters is more than fits any card a hundred times over.
const maxParameters = 1e12

// Run builds the model of a workload and runs steps of it.
func Run(w *workload.Workload, d torch.Device, steps int) (*Process, error) {
	return run(w, false, d, steps, nil)
}

// Builder makes the model of a configuration, as models.New does.
type Builder func(t *torch.Torch, c *hfconfig.Config, r models.Run) (*models.Model, error)

// RunBuilt is Run of a model that is built otherwise; every pass of a step runs.
func RunBuilt(w *workload.Workload, d torch.Device, steps int, build Builder) (p *Process, err error) {
	defer recovered(w, &err)
	if w.Parallel != nil && w.Parallel.Kind != workload.DDP {
		return nil, fmt.Errorf("only models of package models are split over GPUs")
	}
	return (&Process{w: w, builder: build, everyPass: true}).run(d, steps, nil)
}

// run runs the first rank, or the one that needs the most where each is another part
// of the model.
func run(w *workload.Workload, late bool, d torch.Device, steps int, e *effort.Effort) (*Process, error) {
	if isPipeline(w) {
		return heaviestStage(w, d, steps, e)
	}
	return (&Process{w: w, late: late}).run(d, steps, e)
}

// run builds the model and runs steps of it, within an effort.
func (p *Process) run(d torch.Device, steps int, e *effort.Effort) (*Process, error) {
	if _, err := p.goOn(d, steps, e); err != nil {
		return nil, err
	}
	p.end()
	return p, nil
}

// goOn is run of a process that may go on.
func (p *Process) goOn(d torch.Device, steps int, e *effort.Effort) (*Process, error) {
	if err := p.start(d, e); err != nil {
		return nil, err
	}
	if p.parameters = p.t.ParameterCount(); p.parameters > maxParameters {
		return nil, fmt.Errorf("the model has %.3g parameters; the limit for one card is %.0g", float64(p.parameters), float64(maxParameters))
	}
	p.train(steps)
	return p, nil
}

// end ends the process; what it asked for stays.
func (p *Process) end() {
	p.t.End()
	if p.model.End != nil {
		p.model.End()
	}
	p.model, p.opt, p.loop, p.scaler = nil, nil, nil, nil
}

// train runs steps of the model that was built.
func (p *Process) train(steps int) {
	w := p.w
	p.ModelEvents = p.events()
	p.opt = p.t.NewOptimizer(torch.OptimizerNamed(string(w.Optimizer)), impls[w.OptimizerImpl])
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
	p.InputEvents = p.events()
	if p.primed {
		p.startPrimed()
		return
	}
	first := p.t.Work()
	for i := range steps {
		before := p.t.Work()
		if i == 2 && p.brief && p.settled() {
			break
		}
		if i < 2 || w.Varied() || !p.repeat() {
			p.step()
			p.StepWork = p.t.Work().Minus(before)
		} else {
			p.Steps = append(p.Steps, p.events())
		}
		if w.Varied() && i > 0 && i == steps-1 { // the longest there can be, not one that was drawn
			p.StepWork = torch.Work{}.Towards(before.Minus(first), 1/float64(i))
		}
		if i == 0 { // the others are about as long
			t := p.t.Trace()
			t.Events = slices.Grow(t.Events, min((steps-1)*(len(t.Events)-p.InputEvents), mostGrown))
		}
	}
}

// step runs a step.
func (p *Process) step() {
	p.parts, p.rebuilt = parts{}, p.t.BucketsRebuilt()
	p.loop.step()
	p.countPart()
	p.Steps = append(p.Steps, p.events())
}

// newProcess starts a process and builds the model.
func newProcess(w *workload.Workload, d torch.Device, e *effort.Effort) (*Process, error) {
	p := &Process{w: w}
	return p, p.start(d, e)
}

func (p *Process) start(d torch.Device, e *effort.Effort) error {
	w := p.w
	p.t = torch.New(d)
	p.t.Effort = e
	if p.manyCards {
		p.t.KeepQuestions()
	}
	p.t.Expect(min(p.expected, mostGrown))
	p.begin(building)
	p.t.Version = w.Libraries().Torch
	p.t.TF32 = w.Precision == workload.TF32
	if w.Parallel != nil {
		p.t.Ranks = w.Parallel.GPUs
	}
	p.t.Name = w.Config.Architecture
	var err error
	if _, p.head, err = models.Find(w.Config); err != nil {
		return err
	}
	return p.build(d)
}

// rebuilds reports whether the last step is not yet as all after it are: DDP
// rebuilt its buckets in it, even if they came out as they were.
func (p *Process) rebuilds() bool { return p.rebuilt != p.t.BucketsRebuilt() }

// settled reports whether the next step would be the last one again.
func (p *Process) settled() bool {
	return !p.rebuilds() && !p.w.Varied() && p.t.Repeatable(p.Steps[len(p.Steps)-2], p.Steps[len(p.Steps)-1])
}

// repeat runs the last step again: from the second one on, all are alike.
func (p *Process) repeat() bool {
	if p.rebuilds() {
		return false
	}
	from, to := p.Steps[len(p.Steps)-2], p.Steps[len(p.Steps)-1]
	ok, closed := p.t.Repeat(from, to)
	if !ok {
		return false
	}
	if closed && p.alike == 0 {
		p.alike = len(p.Steps)
	}
	for _, s := range p.spans {
		if s.from >= from && s.from < to {
			p.spans = append(p.spans, span{s.phase, s.from + to - from})
		}
	}
	return true
}

// Trace is what the process asked of the allocator.
func (p *Process) Trace() *trace.Trace { return p.t.Trace() }

func (p *Process) events() int { return len(p.t.Trace().Events) }

var impls = map[workload.Impl]torch.Impl{
	workload.Foreach: torch.Foreach, workload.Fused: torch.Fused, workload.Loop: torch.Loop,
}

// call calls the model.
func (p *Process) call(batch *models.Batch) models.Output {
	return p.wrapped(func() models.Output { return p.model.Forward(p.t, batch) })
}

// wrapped calls a model that parallelism is wrapped around.
func (p *Process) wrapped(forward func() models.Output) (out models.Output) {
	p.t.Call(func() []torch.Value {
		out = forward()
		return []torch.Value{out.Loss, out.Logits}
	})
	if findsUnused(p.w) {
		return out.Sunk(p.t, p.cachesTuples())
	}
	return out
}

func (p *Process) cachesTuples() bool { return models.CachesTuples(p.w.Config, p.w.Libraries()) }

// lossOf is the model's own loss, or the mean of its logits.
func (p *Process) lossOf(out models.Output) torch.X {
	if p.w.Loss == workload.MeanLogits {
		return p.t.Mean(out.Logits.Borrow())
	}
	return out.Loss.Borrow()
}

// castType is what autocast casts to, none for a step without it.
func (p *Process) castType() torch.DType {
	switch p.w.Precision {
	case workload.AMPBF16:
		return torch.BFloat16
	case workload.AMPFP16:
		return torch.Float16
	default:
		return torch.NoDType
	}
}
