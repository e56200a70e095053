package predict

import (
	"slices"

	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// pipelineLoop is a stage of a pipeline in the loop of PyTorch's tutorial, with the
// shapes of what stages exchange given to PipelineStage
// (torch/distributed/pipelining/stage.py and schedules.py):
//
//	losses = []
//	out = schedule.step(target=labels, losses=losses)  # step(ids) in the first stage, step() between
//	optimizer.step()
//	optimizer.zero_grad()
//
// Names of operations keep what is sent. Once they drop it, its block waits for
// NCCL's stream (record_stream, ProcessGroupNCCL.cpp, pointToPoint), which is taken to
// have sent it by the next allocation.
type pipelineLoop struct {
	*program
	how    *workload.Parallel
	stage  *models.Stage
	tokens *torch.Tensor // ids in the first stage, labels in the last one

	received  []*torch.Tensor // buffers of what comes in, by microbatch; they stay
	gradients []*torch.Tensor // buffers of what comes back
	outputs   []torch.Value   // fwd_cache
	chunks    []torch.Value   // output_chunks of the last stage
	losses    []torch.Value
	merged    torch.Value // what step returned in the last stage
}

func newPipelineLoop(p *program) *pipelineLoop {
	l := &pipelineLoop{program: p, how: p.w.Parallel, stage: p.w.Parallel.Stage(p.rank)}
	l.outputs = make([]torch.Value, l.how.Microbatches)
	if l.stage.First || l.stage.Last {
		l.tokens = p.t.Input(torch.Int64, p.w.Batch, p.w.Sequence)
	}
	return l
}

func (l *pipelineLoop) step() {
	l.begin(looping)
	l.dropAll(&l.losses) // losses = []
	l.dropAll(&l.chunks) // clear_runtime_states
	if l.parts.passes = 1; l.received == nil && l.gradients == nil {
		l.initialize()
	}
	if l.how.Schedule == workload.GPipe {
		l.fillAndDrain()
	} else {
		l.oneForwardOneBackward()
	}
	if l.stage.Last {
		l.merge()
	}
	l.begin(updating)
	if l.w.Optimizer != workload.NoOptimizer {
		l.opt.Step()
	}
	l.begin(clearing)
	l.opt.ZeroGrad()
	l.begin(looping)
}

// dropAll empties a Python list, which goes from its end.
func (l *pipelineLoop) dropAll(list *[]torch.Value) {
	for _, v := range slices.Backward(*list) {
		l.t.Drop(v)
	}
	*list = (*list)[:0]
}

// initialize is _initialize_stage: neighbours say hello, then there is a buffer for
// every microbatch in either direction.
func (l *pipelineLoop) initialize() {
	l.begin(building)
	receive, send := l.t.Input(torch.Float32, 1), l.t.Input(torch.Float32)
	w := l.w
	shape := []int64{w.Batch / l.how.Microbatches, w.Sequence, l.model.Width}
	for range l.how.Microbatches {
		if !l.stage.First {
			l.received = append(l.received, l.t.Receive(w.Run().DType, true, shape...))
		}
	}
	for range l.how.Microbatches {
		if !l.stage.Last {
			l.gradients = append(l.gradients, l.t.Receive(w.Run().DType, false, shape...))
		}
	}
	if l.stage.First { // the operations go from the last on
		receive, send = send, receive
	}
	l.t.Release(send)
	l.t.Release(receive)
}

// fillAndDrain is ScheduleGPipe._step_microbatches.
func (l *pipelineLoop) fillAndDrain() {
	f := l.t.Enter()
	sending, output := f.Let(torch.Value{}), f.Let(torch.Value{})
	for i := range l.outputs {
		sending.Del()
		l.forward(i, output)
		sending.Set(output)
	}
	for i := range l.outputs {
		sending.Del()
		sending.Set(l.backward(i))
	}
	f.End()
}

// oneForwardOneBackward is Schedule1F1B._step_microbatches: as many microbatches are
// under way as there are stages from this one on.
func (l *pipelineLoop) oneForwardOneBackward() {
	f := l.t.Enter()
	sending, output, sendingBack := f.Let(torch.Value{}), f.Let(torch.Value{}), f.Let(torch.Value{})
	next := 0
	forward := func() {
		l.forward(next, output)
		sending.Set(output)
		next++
	}
	for range min(l.how.Microbatches, l.how.GPUs-l.rank) {
		forward()
	}
	for i := range l.outputs {
		sendingBack.Set(l.backward(i))
		if next < len(l.outputs) {
			forward()
		}
	}
	f.End()
}

// forward is forward_one_chunk and the loss: its output is kept for backward, and that
// of the last stage for whoever called.
func (l *pipelineLoop) forward(i int, output *torch.Var) {
	l.begin(forward)
	batch := &models.Batch{}
	var ids torch.Value
	if l.stage.First {
		ids = l.slice(i)
		batch.IDs = ids.Borrow().(*torch.Var).Tensor()
	} else {
		batch.Hidden = l.received[i]
	}
	out := l.call(batch).Logits
	l.t.Drop(ids)
	l.outputs[i] = l.t.Hold(out.Borrow())
	if l.stage.Last {
		l.chunks = append(l.chunks, l.t.Hold(out.Borrow()))
	}
	output.Set(out)
	if l.stage.Last {
		labels := l.slice(i)
		l.losses = append(l.losses, l.model.Loss(l.t, output, labels.Borrow().(*torch.Var).Tensor()))
		l.t.Drop(labels)
	}
}

// slice is a microbatch of the ids or labels.
func (l *pipelineLoop) slice(i int) torch.Value {
	n := l.w.Batch / l.how.Microbatches
	return l.t.Slice(torch.Borrow(l.tokens), 0, int64(i)*n, int64(i+1)*n)
}

// backward is backward_one_chunk. It returns the gradient of what came in.
func (l *pipelineLoop) backward(i int) (grad torch.Value) {
	l.begin(backward)
	out := l.outputs[i]
	l.outputs[i] = torch.Value{}
	if l.stage.Last {
		l.t.Backward(l.losses[i].Borrow())
	} else {
		l.t.BackwardFrom(out.Borrow(), l.gradients[i])
	}
	if !l.stage.First {
		grad = l.t.TakeGrad(l.received[i])
	}
	l.t.Drop(out)
	return grad
}

// merge is _merge_outputs: the logits of all microbatches together.
func (l *pipelineLoop) merge() {
	l.begin(looping)
	old := l.merged
	parts := make([]torch.X, len(l.chunks))
	for i, c := range l.chunks {
		parts[i] = c.Borrow()
	}
	l.t.As(trace.Activation, func() { l.t.NoGrad(func() { l.merged = l.t.Cat(0, parts...) }) })
	l.t.Drop(old)
}
