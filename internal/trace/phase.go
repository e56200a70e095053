package trace

import (
	"slices"
	"strings"
)

// phase is the part of training that the program was in at an event.
type phase uint8

const (
	between   phase = iota // none of the others: the user's own loop
	build                  // the model is being made
	forward                // a module is being called
	recompute              // a checkpoint runs forward again, inside backward
	backward               // the autograd engine runs
	step                   // the optimizer runs
	zeroGrad               // gradients are being dropped
)

// timetable says for every event which phase it belongs to, and which span: a
// span is a run of events of one phase. A recompute belongs to the span of the
// backward that triggered it, and an out-of-memory error begins a new span,
// because what is freed after it is freed by the exception.
type timetable struct {
	phase   []phase
	byStack []phase // what each stack of the table stands for
	span    []int32
	failed  []bool // by span: it ended in an out-of-memory error
	forward []int  // events at which a forward span begins
	known   bool   // there is more than the user's loop
}

func (t *Trace) timetable() *timetable {
	byStack := t.phaseByStack()
	tt := &timetable{phase: t.phases(byStack), byStack: byStack, span: make([]int32, len(t.Events)), failed: []bool{false}}
	var now int32
	last := between
	for i, p := range tt.phase {
		p = p.outer()
		if i > 0 && (p != last || t.Events[i-1].Action == OutOfMemory) {
			tt.failed[now] = t.Events[i-1].Action == OutOfMemory
			tt.failed = append(tt.failed, false)
			now++
		}
		if p == forward && (i == 0 || tt.span[i-1] != now) {
			tt.forward = append(tt.forward, i)
		}
		tt.span[i] = now
		tt.known = tt.known || p != between
		last = p
	}
	return tt
}

// outer returns the phase that a span of this phase is part of.
func (p phase) outer() phase {
	if p == recompute {
		return backward
	}
	return p
}

// phases returns the phase of every event: by the optimizer's marks where
// there are some, else by the stack.
//
// The engine's threads have no Python stack, so an empty stack means backward,
// provided that the recording has stacks at all. PyTorch can be told to record
// the stacks of allocations only; frees then belong to the current phase.
func (t *Trace) phases(byStack []phase) []phase {
	out := make([]phase, len(t.Events))
	allocStacks, freeStacks := t.hasStacks()
	last := between
	for i := range t.Events {
		e := &t.Events[i]
		isFree := e.Action == FreeRequested || e.Action == FreeCompleted
		switch {
		case e.Stack != 0:
			out[i] = byStack[e.Stack]
		case isFree && !freeStacks, e.Action == SnapshotTaken, e.Action == Annotated:
			out[i] = last
		case allocStacks:
			out[i] = backward
		}
		last = out[i]
	}
	t.markPhases(out)
	return out
}

func (t *Trace) hasStacks() (allocs, frees bool) {
	for i := range t.Events {
		if t.Events[i].Stack == 0 {
			continue
		}
		switch t.Events[i].Action {
		case Alloc:
			allocs = true
		case FreeRequested, FreeCompleted:
			frees = true
		default:
		}
	}
	return allocs, frees
}

// markPhases overrides phases between the marks that torch.optim sets,
// "Optimizer.step#AdamW.step" and "Optimizer.zero_grad#AdamW.zero_grad".
func (t *Trace) markPhases(out []phase) {
	open := make(map[phase]int) // marks begun and not ended
	from := 0
	for _, m := range append(slices.Clone(t.Marks), Mark{Event: len(t.Events)}) {
		for _, p := range []phase{step, zeroGrad} {
			if open[p] > 0 {
				fill(out[from:m.Event], p)
			}
		}
		from = m.Event
		if p := markedPhase(m.Name); !m.End {
			open[p]++
		} else if open[p] > 0 {
			open[p]--
		}
	}
}

func markedPhase(name string) phase {
	switch {
	case strings.HasPrefix(name, "Optimizer.step#"):
		return step
	case strings.HasPrefix(name, "Optimizer.zero_grad#"):
		return zeroGrad
	default:
		return between
	}
}

func fill(phases []phase, p phase) {
	for i := range phases {
		phases[i] = p
	}
}

// phaseByStack returns the phase that each stack of the table stands for.
func (t *Trace) phaseByStack() []phase {
	frames := make([]hint, len(t.Stacks.frames))
	for i, f := range t.Stacks.frames {
		frames[i] = hintOf(f)
	}
	out := make([]phase, t.Stacks.Len())
	for id := range out {
		out[id] = phaseOfStack(t.Stacks.IDs(StackID(id)), frames)
	}
	return out
}

// hint is what a single frame says about the phase.
type hint uint8

const (
	isOptimizer  hint = 1 << iota // a frame of torch.optim, or clipping for it
	isZeroGrad                    // a function that drops gradients
	isBackward                    // the call that starts the engine, or the engine
	isCheckpoint                  // a checkpoint that runs forward again
	isCall                        // a module being called
	isInit                        // a module being made or moved
	isTorch                       // a Python frame of PyTorch
	isNative                      // a C++ frame
)

// hintOf reads one frame. File names are PyTorch's since at least 2.0.
func hintOf(f Frame) hint {
	var h hint
	in := func(path string) bool { return strings.Contains(f.File, path) }
	if f.IsNative() {
		if strings.Contains(f.Name, "torch::autograd::Engine") {
			return isNative | isBackward
		}
		return isNative
	}
	if f.in("torch") {
		h |= isTorch
	}
	switch {
	case f.Name == "zero_grad":
		h |= isZeroGrad
	case in("torch/optim/"), in("torch/nn/utils/clip_grad"):
		h |= isOptimizer
	case in("torch/autograd/__init__.py"), in("torch/_tensor.py") && f.Name == "backward",
		f.Name == "_engine_run_backward":
		h |= isBackward
	case in("torch/utils/checkpoint.py") && (f.Name == "unpack_hook" || f.Name == "recompute_fn" || f.Name == "backward"):
		h |= isCheckpoint
	case f.Name == "_call_impl", in("torch/_inductor/output_code.py"): // the latter runs a compiled graph
		h |= isCall
	case f.Name == "__init__", f.Name == "from_pretrained", in("torch/nn/modules/") && (f.Name == "_apply" || f.Name == "to" || f.Name == "cuda"),
		in("torch/nn/parameter.py"), in("torch/nn/init.py"):
		h |= isInit
	}
	return h
}

// phaseOfStack decides by the frames of a stack, innermost first. Optimizers
// and checkpoints call modules and modules make modules, so the order of the
// cases matters.
func phaseOfStack(ids []FrameID, frames []hint) phase {
	var all, outermost hint
	for _, id := range ids {
		all |= frames[id]
		if frames[id]&isNative == 0 {
			outermost = frames[id]
		}
	}
	switch {
	case all&isZeroGrad != 0:
		return zeroGrad
	case all&isOptimizer != 0:
		return step
	case all&isCheckpoint != 0:
		return recompute
	// A Python stack that begins in PyTorch is the engine calling back, as for
	// a torch.autograd.Function written in Python.
	case all&isBackward != 0, outermost&isTorch != 0:
		return backward
	case all&isCall != 0:
		return forward
	case all&isInit != 0:
		return build
	default:
		return between
	}
}
