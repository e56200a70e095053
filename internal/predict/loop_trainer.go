package predict

import (
	"slices"
	"strings"

	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// trainerLoop is Hugging Face's Trainer (transformers/trainer.py), with what it
// has of Accelerate. Its names are those of _run_epoch, which runs all the
// while.
type trainerLoop struct {
	*program
	samples    []*models.Batch // batch_samples; the last one is inputs, too
	items      *torch.Var      // num_items_in_batch
	trLossStep *torch.Var
	gradNorm   *torch.Var
	trLoss     *torch.Var // of transformers 4; later ones add to self._tr_loss
}

func newTrainerLoop(p *program) *trainerLoop {
	if p.w.Parallel == nil || p.w.Parallel.Kind != workload.ZeRO1 { // which one hands over ready-made
		p.opt.AsTrainerMakes()
	}
	p.t.EmptyCache()                   // _inner_training_loop: self.accelerator.free_memory()
	trLoss := p.t.Input(torch.Float32) // self._tr_loss, which stays
	f := p.t.Enter()                   // _run_epoch
	name := func() *torch.Var { return f.Let(torch.Value{}) }
	l := &trainerLoop{program: p, items: name(), trLossStep: name(), gradNorm: name(), trLoss: name()}
	if l.isOf4() {
		l.trLoss.Set(torch.Borrow(trLoss))
		p.t.Release(trLoss)
	}
	return l
}

// step is an iteration of the outer loop.
func (l *trainerLoop) step() {
	t := l.t
	l.begin(feeding)
	l.getBatchSamples()
	l.passesAlone(func(i int) {
		loss := l.trainingStep(l.samples[i])
		l.trLossStep.Set(loss)
		t.Drop(t.Compare(l.trLossStep))           // torch.isnan
		t.Drop(t.Compare(t.Floats(l.trLossStep))) // torch.isinf: abs(x) == inf
		if l.isOf4() {
			l.trLoss.Set(t.Add(l.trLoss, l.trLossStep))
		}
	})
	l.begin(updating)
	l.clipGradNorm()
	l.update()
	l.begin(clearing)
	t.ZeroGrad() // model.zero_grad()
	l.begin(looping)
}

// clipGradNorm is _clip_grad_norm; without max_grad_norm, _get_grad_norm computes the
// norm all the same. Transformers 4 does not, and keeps the last norm meanwhile.
func (l *trainerLoop) clipGradNorm() {
	if !l.isOf4() {
		l.gradNorm.Del()
	} else if !l.w.ClipGradNorm {
		return
	}
	l.gradNorm.Set(l.clip())
}

// isOf4 reports whether the Trainer is that of a transformers 4.
func (l *trainerLoop) isOf4() bool { return l.w.Libraries().Transformers.Before(5, 0) }

// averages reports whether average_tokens_across_devices is true, which it is unless
// one says otherwise since transformers 4.57 (transformers/training_args.py).
func (l *trainerLoop) averages() bool { return !l.w.Libraries().Transformers.Before(4, 57) }

// getBatchSamples is get_batch_samples: all batches of the step are on the
// device before the first one is used, and the last one of the step before is
// still there, as inputs.
func (l *trainerLoop) getBatchSamples() {
	var samples []*models.Batch
	for range l.w.Accumulate {
		samples = append(samples, l.makeBatch(true))
	}
	items := l.countItems(samples)
	old := l.samples
	l.samples = samples
	for i := len(old) - 2; i >= 0; i-- { // a list goes from its end
		l.dropBatch(old[i])
	}
	l.items.Set(items)
	for _, b := range samples {
		b.Items = l.items.Tensor()
	}
	if len(old) > 0 {
		l.dropBatch(old[len(old)-1])
	}
}

// countItems is _get_num_items_in_batch: sum(labels.ne(-100).sum() for labels
// in …), which begins with 0.
func (l *trainerLoop) countItems(samples []*models.Batch) torch.Value {
	t := l.t
	if samples[0].Labels == nil || !models.TakesKeywords(l.w.Config, l.w.Libraries()) {
		return torch.Value{}
	}
	f := t.Enter()
	total := f.Let(torch.Value{})
	items := make([]*torch.Var, len(samples))
	for i, b := range samples {
		items[i] = f.Let(l.countLabels(b))
		if l.averages() { // since when it is a generator, not a list
			addItem(t, total, items[i])
			items[i].Del()
		}
	}
	switch {
	case !l.averages():
		for _, item := range items {
			addItem(t, total, item)
		}
		for _, item := range slices.Backward(items) {
			item.Del()
		}
	case l.isOf4():
		total.Set(t.Integers(total)) // gather(…).sum(), which later ones leave out on one GPU
	case t.Ranks > 1:
		total.Set(t.SumOverRanks(total))
	}
	return f.Return(total)
}

func addItem(t *torch.Torch, total, item *torch.Var) {
	if total.Tensor() == nil {
		total.Set(t.Integers(item)) // 0 + item
	} else {
		total.Set(t.Integers(total, item))
	}
}

// countLabels is labels.ne(-100).sum(). Since transformers 5, the first label of a
// causal language model does not count.
func (l *trainerLoop) countLabels(b *models.Batch) torch.Value {
	f := l.t.Enter()
	labels := f.Let(torch.Borrow(b.Labels))
	if strings.HasSuffix(l.head.Architecture, "ForCausalLM") && !l.isOf4() {
		labels.Set(l.t.Slice(labels, -1, 1, b.Labels.Dim(-1)))
	}
	return f.Return(l.t.SumBools(l.t.Compare(labels)))
}

// trainingStep is training_step. What it returns is apart from the graph, which
// then goes, with what its leaves are: embeddings that were made to need gradients.
func (l *trainerLoop) trainingStep(inputs *models.Batch) torch.Value {
	t := l.t
	f := t.Enter()
	l.begin(forward)
	loss := f.Let(l.computeLoss(inputs))
	if inputs.Items == nil && (l.averages() || !models.TakesKeywords(l.w.Config, l.w.Libraries())) {
		loss.Set(t.Scale(loss)) // loss / current_gradient_accumulation_steps
	}
	l.begin(backward)
	l.accelerateBackward(loss)
	return f.Return(t.Detach(loss))
}

// computeLoss is compute_loss, which drops the output when it returns.
func (l *trainerLoop) computeLoss(inputs *models.Batch) torch.Value {
	t := l.t
	f := t.Enter()
	out := l.callPrepared(inputs)
	loss := f.Let(l.lossOf(out))
	if inputs.Items != nil && l.averages() {
		t.ScaleInPlace(loss) // average_tokens_across_devices: loss *= num_processes
	}
	out.Drop(t)
	return f.Return(loss)
}

// callPrepared calls a model that Accelerator.prepare has put autocast and
// convert_outputs_to_fp32 around (accelerate/accelerator.py, prepare_model).
func (p *program) callPrepared(batch *models.Batch) models.Output {
	return p.wrapped(func() (out models.Output) {
		p.t.Autocast(p.castType(), func() { out = p.model.Forward(p.t, batch) })
		if p.castType() == torch.NoDType {
			return out
		}
		return out.InFloat32(p.t, p.cachesTuples())
	})
}

// accelerateBackward is Accelerator.backward.
func (p *program) accelerateBackward(loss *torch.Var) {
	f := p.t.Enter()
	scaled := f.Let(p.t.Scale(loss)) // loss / self.gradient_accumulation_steps
	p.backward(scaled)
	f.End()
}
