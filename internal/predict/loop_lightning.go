package predict

import (
	"memorymark/internal/models"
	"memorymark/internal/torch"
)

// lightningLoop is Lightning's Trainer with a training_step that returns the
// model's loss (lightning/pytorch/loops).
type lightningLoop struct {
	*program
	batch *models.Batch
	f     *torch.Frame // advance of the training epoch loop, nil before the first
}

// newLightningLoop is what fit does before the first batch: it empties the cache
// (trainer/connectors/checkpoint_connector.py, resume_end), and asks twice
// whether the loader has a length on all ranks (fit_loop.py, setup_data;
// utilities/data.py, has_len_all_ranks).
func newLightningLoop(p *program) *lightningLoop {
	t := p.t
	t.EmptyCache()
	p.barriers(3) // resume_end, _run_stage, setup_data
	for range 2 {
		f := t.Enter()
		length := f.Let(t.Full(torch.Int64))
		p.barriers(1) // of the sum over all ranks (lightning/fabric/utilities/distributed.py, _sync_ddp)
		t.Drop(t.Compare(length))
		t.Drop(t.Compare(length))
		f.End()
	}
	return &lightningLoop{program: p}
}

// step is advance, called for each batch.
func (l *lightningLoop) step() {
	t := l.t
	last := l.w.Accumulate - 1
	l.passesUntil(last, func(i int) {
		if l.f != nil { // it returns after the callbacks have run
			l.begin(looping)
			l.f.End()
			l.dropBatch(l.batch) // which kwargs still had
		}
		l.f = t.Enter()
		l.begin(feeding)
		l.batch = l.makeBatch(true)
		if i == last {
			l.optimize(i == 0, true)
			return
		}
		t.NoSync(func() { l.optimize(i == 0, false) }) // DDPStrategy.block_backward_sync
	})
	l.begin(looping)
}

// optimize is run of the automatic optimization. The closure runs the model
// and backward within the optimizer's step; its result, which has the loss
// twice, lives until the step is over, and the batch's output, a name of
// advance, keeps the one that is detached (optimization/automatic.py).
func (l *lightningLoop) optimize(first, last bool) {
	t := l.t
	f := t.Enter()
	l.begin(forward)
	output := f.Let(l.trainingStep())
	closureLoss := f.Let(t.Scale(output)) // closure_loss / normalize
	l.f.Let(t.Clone(closureLoss))         // .detach().clone()
	output.Del()
	if first { // the gradients of the last step were there during forward
		l.begin(clearing)
		l.opt.ZeroGrad()
	}
	l.begin(backward)
	l.backward(closureLoss)
	if last {
		l.begin(updating)
		if l.w.ClipGradNorm {
			t.Drop(l.clip())
		}
		l.update()
	}
	l.begin(looping)
	f.End()
}

// trainingStep is training_step under the plugin's autocast, which since Lightning 2.6 keeps no
// casts (plugins/precision/amp.py, cache_enabled=False).
func (l *lightningLoop) trainingStep() torch.Value {
	var loss torch.Value
	autocast := l.t.AutocastUncached
	if l.w.Libraries().Transformers.Before(4, 57) { // with which Lightning 2.5 was new
		autocast = l.t.Autocast
	}
	autocast(l.castType(), func() {
		l.t.Call(func() []torch.Value { // around training_step, not around the model
			out := l.model.Forward(l.t, l.batch)
			loss = l.t.Hold(l.lossOf(out))
			out.Drop(l.t)
			return []torch.Value{loss}
		})
	})
	return loss
}
