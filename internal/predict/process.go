// Package predict turns a workload into what its training step will take:
// peaks, their breakdown by cause, and the largest batch that trains. It runs
// the model on a symbolic PyTorch (package torch) and the trace of that on a
// simulated allocator.
package predict

import (
	"fmt"
	"slices"

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
	batch models.Batch
	// lastLoss is the name of the loss where it outlives a step.
	lastLoss *torch.Var

	// ModelEvents and InputEvents are how many events there were once the
	// model was built, and once the batch was there.
	ModelEvents, InputEvents int
	// Steps are the events at which each step ended.
	Steps []int
	// StepWork is what the last step asked of the card.
	StepWork torch.Work

	spans []span // what was going on, by event
	open  string // the mark that the latest span has begun, "" for none
}

// maxParameters is more than fits any card a hundred times over.
const maxParameters = 1e12

// Run builds the model of a workload and runs steps of it.
func Run(w *workload.Workload, d torch.Device, steps int) (*Process, error) {
	p, err := newProcess(w, d)
	if err != nil {
		return nil, err
	}
	if n := p.t.ParameterCount(); n > maxParameters {
		return nil, fmt.Errorf("the model has %.3g parameters; more than %.0g are not predicted for one card", float64(n), float64(maxParameters))
	}
	p.ModelEvents = p.events()
	p.opt = p.t.NewOptimizer(torch.OptimizerNamed(string(w.Optimizer)), impls[w.OptimizerImpl])
	p.begin(feeding)
	p.makeBatch()
	p.InputEvents = p.events()
	for i := range steps {
		if i < 2 || !p.repeat() {
			before := p.t.Work()
			p.step()
			p.StepWork = p.t.Work().Minus(before)
		}
		p.Steps = append(p.Steps, p.events())
		if i == 0 { // the others are about as long
			t := p.t.Trace()
			t.Events = slices.Grow(t.Events, (steps-1)*(len(t.Events)-p.InputEvents))
		}
	}
	return p, nil
}

// newProcess starts a process and builds the model.
func newProcess(w *workload.Workload, d torch.Device) (*Process, error) {
	p := &Process{t: torch.New(d), w: w}
	p.begin(building)
	p.t.TF32 = w.Precision == workload.TF32
	p.t.Name = w.Config.Architecture
	var err error
	if _, p.head, err = models.Find(w.Config); err != nil {
		return nil, err
	}
	return p, p.build(d)
}

// repeat runs the last step again: from the second one on, all are alike.
func (p *Process) repeat() bool {
	from, to := p.Steps[len(p.Steps)-2], p.Steps[len(p.Steps)-1]
	if !p.t.Repeat(from, to) {
		return false
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

// makeBatch makes one batch: ids or pixels, a mask if asked, labels.
func (p *Process) makeBatch() {
	w, t, b := p.w, p.t, &p.batch
	if w.TakesImages() {
		b.Pixels = t.Input(w.Run().DType, w.Batch, 3, w.Image, w.Image)
	} else {
		b.IDs = t.Input(torch.Int64, w.Batch, w.Sequence)
	}
	if w.AttentionMask != workload.NoMask && b.IDs != nil {
		b.Mask = t.Input(torch.Int64, w.Batch, w.Sequence)
	}
	if w.Loss == workload.MeanLogits {
		if p.head.Decodes {
			b.DecoderIDs = b.IDs
		}
		return
	}
	switch p.head.Labels {
	case models.Classes:
		b.Labels = t.Input(torch.Int64, w.Batch)
	case models.Spans:
		b.Starts, b.Ends = t.Input(torch.Int64, w.Batch), t.Input(torch.Int64, w.Batch)
	case models.TargetIDs, models.TokenTags:
		b.Labels = t.Input(torch.Int64, w.Batch, w.Sequence)
	case models.SameIDs:
		b.Labels = b.IDs
	case models.NoLabels:
	}
}

// step is one training step, as a plain loop writes it.
func (p *Process) step() {
	t := p.t
	f := t.Enter()
	defer f.End()
	defer p.begin(looping)
	p.begin(forward)
	if p.w.Phase == workload.Infer {
		t.NoGrad(func() { t.Autocast(p.castType(), func() { p.model.Forward(t, &p.batch).Drop(t) }) })
		return
	}
	loss := p.lossName(f)
	var out models.Output
	t.Autocast(p.castType(), func() {
		out = p.forward()
		loss.Set(p.loss(out))
	})
	p.begin(looping)
	out.Drop(t)
	if p.w.Phase == workload.Forward {
		return
	}
	p.begin(backward)
	t.Backward(loss)
	for range p.w.Accumulate - 1 {
		p.begin(looping)
		loss.Del()
		p.begin(forward)
		t.Autocast(p.castType(), func() {
			out := p.forward()
			loss.Set(p.loss(out))
			out.Drop(t)
		})
		p.begin(backward)
		t.Backward(loss)
	}
	p.begin(updating)
	if p.w.Optimizer != workload.NoOptimizer {
		if p.w.ClipGradNorm {
			t.ClipGradNorm()
		}
		p.opt.Step()
	}
	p.begin(clearing)
	p.opt.ZeroGrad()
}

// lossName is the name of the loss. It goes when the step returns; a job on
// many GPUs runs its steps in a loop of one function, where it stays until the
// next loss is there.
func (p *Process) lossName(step *torch.Frame) *torch.Var {
	if p.w.Parallel == nil {
		return step.Let(torch.Value{})
	}
	if p.lastLoss == nil {
		p.lastLoss = p.t.Enter().Let(torch.Value{})
	}
	return p.lastLoss
}

// forward calls the model.
func (p *Process) forward() (out models.Output) {
	p.t.Call(func() []torch.Value {
		out = p.model.Forward(p.t, &p.batch)
		return []torch.Value{out.Loss, out.Logits}
	})
	return out
}

// loss is the model's own loss, or the mean of its logits.
func (p *Process) loss(out models.Output) torch.X {
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
