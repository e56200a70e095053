package predict

import (
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// loop is a training loop: it feeds the model, and keeps alive between steps
// what its names stand for. Its state is what its functions have when a step
// ends.
type loop interface {
	step()
}

func newLoop(p *program) loop {
	if p.w.Parallel != nil && p.w.Parallel.Kind == workload.Pipeline {
		return newPipelineLoop(p)
	}
	if p.w.Phase == workload.Train {
		if p.w.Precision == workload.AMPFP16 && p.w.Loop.IsLibrarys() || p.w.Loop.Scaler == workload.GradScaler {
			p.scaler = p.t.NewGradScaler()
		}
		switch p.w.Loop.Name {
		case workload.TrainerLoop:
			return newTrainerLoop(p)
		case workload.LightningLoop:
			return newLightningLoop(p)
		case workload.AccelerateLoop:
			return newAccelerateLoop(p)
		}
	}
	return newPlainLoop(p)
}

// plainLoop is a loop as people write it: one batch, and names in the order of
// the code.
type plainLoop struct {
	*program
	does  workload.TrainingLoop
	batch *models.Batch
	fed   bool // the batch was used
	f     *torch.Frame
	out   models.Output // while its name stands for it
	loss  *torch.Var
}

func newPlainLoop(p *program) *plainLoop {
	l := &plainLoop{program: p, does: p.w.Loop.OrPlain(), batch: p.makeBatch(p.w.Varied())}
	if p.model.Feed == nil {
		p.t.Launch() // the batch is drawn on the device
	}
	return l
}

// feed fetches a batch. Where all are alike, there is one.
func (l *plainLoop) feed() {
	if l.w.Varied() && l.fed {
		l.nextBatch()
	}
	l.fed = true
}

// nextBatch moves a batch of another length to the device. The name stands for
// the last one until then:
//
//	batch = {key: value.cuda() for key, value in batch.items()}
func (l *plainLoop) nextBatch() {
	l.begin(feeding)
	old := l.batch
	l.batch = l.makeBatch(true)
	l.dropBatch(old)
}

// step is a step.
func (l *plainLoop) step() {
	l.enterStep()
	l.run()
	l.leaveStep()
}

// enterStep and leaveStep are around a step. That of a loop without a name is in no
// function of its own, and neither is that of a job on many GPUs, so names stay
// until they are bound again.
func (l *plainLoop) enterStep() {
	if l.f == nil {
		l.f = l.t.Enter()
		l.loss = l.f.Let(torch.Value{})
	}
}

func (l *plainLoop) leaveStep() {
	l.begin(looping)
	if l.does.Name != "" && l.w.Parallel == nil {
		l.f.End()
		l.f = nil
	}
}

// prime leaves of a first step what the next one finds: the optimizer's state, and
// the loss. The gradients come from nowhere.
func (l *plainLoop) prime() {
	l.enterStep()
	loss := l.t.Input(torch.Float32)
	l.loss.Set(torch.Borrow(loss))
	l.t.Release(loss)
	l.t.MakeGradients()
	l.updateAll()
	l.leaveStep()
}

func (l *plainLoop) run() {
	if l.w.Phase == workload.Infer {
		l.feed()
		l.begin(forward)
		l.t.NoGrad(func() { l.t.Autocast(l.castType(), func() { l.call(l.batch).Drop(l.t) }) })
		return
	}
	if l.w.Phase == workload.Forward {
		l.feed()
		l.zeroGrad(workload.ZeroBeforeForward, true)
		l.forward(true)
		return
	}
	l.passes(func(i int) {
		l.feed()
		l.zeroGrad(workload.ZeroBeforeForward, i == 0)
		l.forward(i == 0)
		l.zeroGrad(workload.ZeroBeforeBackward, i == 0)
		l.begin(backward)
		l.backward(l.loss)
	})
	l.updateAll()
}

// updateAll is what comes after the passes.
func (l *plainLoop) updateAll() {
	l.begin(updating)
	l.trained = l.t.Gradients()
	if l.w.Optimizer != workload.NoOptimizer && l.w.Phase == workload.Train {
		if l.w.ClipGradNorm {
			l.t.Drop(l.clip())
		}
		l.update()
	}
	l.zeroGrad(workload.ZeroAfterStep, true)
}

// forward calls the model. The output of the last call stays until the name
// stands for the new one; if outputs are dropped, so is the loss of a pass
// before.
func (l *plainLoop) forward(first bool) {
	kept := l.does.Outputs == workload.OutputsKept
	if !kept && !first {
		l.begin(looping)
		l.loss.Del()
	}
	l.begin(forward)
	l.t.Autocast(l.castType(), func() {
		old := l.out
		l.out = l.call(l.batch)
		old.Drop(l.t)
		l.loss.Set(l.lossOf(l.out))
		if !kept && !first {
			l.dropOutput()
		}
	})
	if !kept && first {
		l.begin(looping)
		l.dropOutput()
	}
}

func (l *plainLoop) dropOutput() {
	l.out.Drop(l.t)
	l.out = models.Output{}
}

// zeroGrad drops the gradients where the loop does it.
func (l *plainLoop) zeroGrad(here workload.ZeroGrad, now bool) {
	if l.does.ZeroGrad == here && now {
		l.begin(clearing)
		l.opt.ZeroGrad()
	}
}

// passes runs the passes whose gradients a step accumulates. The first one makes
// the gradients, and the others are alike, but for one that rebuilds DDP's buckets:
// the first of them that ends in the state it began in stands for the rest.
func (p *program) passes(pass func(i int)) { p.passesUntil(p.w.Accumulate, pass) }

// passesUntil is passes where those up to n are alike, and the rest is not.
func (p *program) passesUntil(alike int, pass func(i int)) {
	for i := 0; i < p.w.Accumulate; i++ {
		from, rebuilt := p.events(), p.t.BucketsRebuilt()
		work, counted := p.t.Work(), p.parts
		pass(i)
		p.countPart()
		p.parts.passes++
		rounds, settled := alike-i, i > 0 && rebuilt == p.t.BucketsRebuilt()
		if settled && rounds > 1 && !p.everyPass && p.t.Loop(from, rounds, p.t.Work().Since(work)) {
			i = alike - 1
			p.parts.countAgain(counted, rounds-1)
		}
		p.began = p.t.Work()
	}
}

// passesAlone is passes of a loop with what it has of Accelerate: only the last one
// reduces gradients (accelerate/accelerator.py, no_sync), so it differs then.
func (p *program) passesAlone(pass func(i int)) {
	last := p.w.Accumulate - 1
	alike := p.w.Accumulate
	if p.w.Parallel != nil {
		alike = last
	}
	p.passesUntil(alike, func(i int) {
		if i == last {
			pass(i)
			return
		}
		p.t.NoSync(func() { pass(i) })
	})
}

// backward is loss.backward(), of a scaled loss if there is a scaler.
func (p *program) backward(loss torch.X) {
	if p.scaler != nil {
		loss = p.scaler.Scale(loss)
	}
	p.t.Backward(loss)
}

// clip is clip_grad_norm_, before which a scaler makes gradients what they
// are. It returns the norm.
func (p *program) clip() torch.Value {
	if p.scaler != nil {
		p.scaler.Unscale()
	}
	return p.t.ClipGradNorm()
}

// update is optimizer.step(), which a scaler may call.
func (p *program) update() {
	if p.scaler != nil {
		p.scaler.Step(p.opt)
		return
	}
	p.opt.Step()
}
