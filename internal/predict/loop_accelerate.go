package predict

import (
	"memorymark/internal/models"
	"memorymark/internal/torch"
)

// accelerateLoop is the loop of Accelerate's documentation
// (https://huggingface.co/docs/accelerate/basic_tutorials/migration):
//
//	for batch in dataloader:
//	    optimizer.zero_grad()
//	    outputs = model(**batch)
//	    loss = outputs.loss
//	    accelerator.backward(loss)
//	    optimizer.step()
//
// Its names live as long as the program.
type accelerateLoop struct {
	*program
	batch *models.Batch
	out   models.Output
	loss  *torch.Var
}

func newAccelerateLoop(p *program) *accelerateLoop {
	return &accelerateLoop{program: p, loss: p.t.Enter().Let(torch.Value{})}
}

func (l *accelerateLoop) step() {
	l.passesAlone(func(i int) {
		l.begin(feeding)
		l.nextBatch()
		if i == 0 {
			l.begin(clearing)
			l.opt.ZeroGrad()
		}
		l.begin(forward)
		old := l.out
		l.out = l.callPrepared(l.batch)
		l.begin(looping)
		old.Drop(l.t)
		l.loss.Set(l.lossOf(l.out))
		l.begin(backward)
		l.accelerateBackward(l.loss)
	})
	l.begin(updating)
	if l.w.ClipGradNorm {
		l.t.Drop(l.clip())
	}
	l.update()
	l.begin(looping)
}

// nextBatch fetches a batch: the next one is on the device before the name
// drops the last (accelerate/data_loader.py, DataLoaderShard.__iter__).
func (l *accelerateLoop) nextBatch() {
	old := l.batch
	l.batch = l.makeBatch(true)
	l.dropBatch(old)
}
