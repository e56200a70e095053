package trace

import "slices"

// Classify infers what the memory of a recording is for from stacks, the
// optimizer's marks and lifetimes. It sets For where it is Unknown, and leaves
// it Unknown where no rule applies. The phases are those of timetable; a "span"
// is one run of a phase.
//
//  1. Made while the model is built, and freed there: temporary. Still there
//     when the building ends: parameter (buffers included).
//  2. Made in an optimizer's step and freed in it: temporary. Alive at its
//     end: optimizer state. In a step that ran out of memory only what
//     _init_group made is state, since the rest is freed by the exception.
//  3. Made in forward or backward, never freed, and of a size that cuBLAS
//     takes as scratch: workspace.
//  4. Made in forward and freed in the same span: temporary. Alive at its end:
//     activation. What a checkpoint makes again in backward counts as forward.
//  5. Made in backward and freed in the same span: temporary. Alive at its
//     end: gradient, and where the recording stops in mid-backward some
//     temporaries among them. After an out-of-memory error, what the exception
//     frees is temporary.
//  6. Made by the user's loop and freed in backward: activation (a loss that is
//     no module). Alive when the next forward begins: input. Freed before
//     anything else happened, in a recording in which something else does:
//     temporary.
//  7. Made where no stack tells and freed by zero_grad: gradient.
//  8. Live before the recording and freed by zero_grad: gradient. Never freed:
//     by the stack, see keptFrom, and where there is none by counting, see
//     initial.
func (t *Trace) Classify(lifetimes []Lifetime) {
	c := classifier{t: t, tt: t.timetable(), all: lifetimes, initGroup: t.stacksThrough("_init_group")}
	for i := range lifetimes {
		l := &lifetimes[i]
		if l.For == Unknown && l.Alloc >= 0 {
			l.For = c.recorded(l)
		}
	}
	c.initial()
}

type classifier struct {
	t         *Trace
	tt        *timetable
	all       []Lifetime
	initGroup []bool // by stack: made by an optimizer's _init_group
}

// recorded classifies an allocation whose alloc event was recorded.
func (c *classifier) recorded(l *Lifetime) Category {
	born := c.tt.phase[l.Alloc]
	if c.isWorkspace(l, born) {
		return Workspace
	}
	inSpan := c.freedInSpan(l)
	switch born {
	case build:
		return temporaryIf(inSpan, Parameter)
	case step:
		failed := c.tt.failed[c.tt.span[l.Alloc]]
		return temporaryIf(inSpan || failed && !c.initGroup[l.Stack], OptimizerState)
	case forward:
		return temporaryIf(inSpan, Activation)
	case recompute:
		return temporaryIf(c.freedIn(l, recompute), Activation)
	case backward:
		return temporaryIf(inSpan || c.freedByException(l), Gradient)
	default:
		return c.madeBetween(l, inSpan)
	}
}

func (c *classifier) madeBetween(l *Lifetime, inSpan bool) Category {
	switch {
	case c.freedIn(l, zeroGrad):
		return Gradient
	case c.freedIn(l, backward):
		return Activation
	case inSpan && c.tt.known:
		return Temporary
	case c.meetsForward(l):
		return Input
	default:
		return Unknown
	}
}

// temporaryIf returns Temporary if the condition holds, else the other one.
func temporaryIf(condition bool, other Category) Category {
	if condition {
		return Temporary
	}
	return other
}

// freedIn reports whether the allocation is freed in a phase.
func (c *classifier) freedIn(l *Lifetime, p phase) bool {
	return l.Freed < len(c.tt.phase) && c.tt.phase[l.Freed] == p
}

// freedInSpan reports whether the allocation is freed in the span that made it.
func (c *classifier) freedInSpan(l *Lifetime) bool {
	return l.Freed < len(c.tt.span) && c.tt.span[l.Freed] == c.tt.span[l.Alloc]
}

// freedByException reports whether the span that made the allocation ran out
// of memory and the next one frees it.
func (c *classifier) freedByException(l *Lifetime) bool {
	span := c.tt.span[l.Alloc]
	return c.tt.failed[span] && l.Freed < len(c.tt.span) && c.tt.span[l.Freed] == span+1
}

// meetsForward reports whether the allocation is alive when a forward begins.
func (c *classifier) meetsForward(l *Lifetime) bool {
	next, _ := slices.BinarySearch(c.tt.forward, l.Alloc)
	return next < len(c.tt.forward) && c.tt.forward[next] < l.Freed
}

// cublasWorkspaces are the sizes that PyTorch allocates for cuBLAS, once for
// each handle and stream, and keeps: 32 MiB on compute capability 9 and later
// and 8320 KiB before (aten/src/ATen/cuda/CublasHandlePool.cpp, v2.11.0,
// parseChosenWorkspaceSize), and 1 MiB for cuBLASLt.
var cublasWorkspaces = map[int64]bool{32 << 20: true, 8320 << 10: true, 1 << 20: true}

// isWorkspace reports whether an allocation made in forward or backward is
// cuBLAS's. It must outlive its span: in a recording that stops in mid-forward
// an activation may have that size too.
func (c *classifier) isWorkspace(l *Lifetime, born phase) bool {
	if born != forward && born != backward && born != recompute || !cublasWorkspaces[l.Size] {
		return false
	}
	last := len(c.tt.span) - 1
	return l.Freed > last && c.tt.span[last] != c.tt.span[l.Alloc]
}

// keptFrom classifies, by its stack, an allocation that was live before the
// recording and is never freed. It has a stack if it was made under
// _record_memory_history("state"), which keeps those of live blocks and no
// events, or if its event was overwritten in the ring buffer
// (c10/cuda/CUDACachingAllocator.cpp, v2.11.0: alloc_found_block sets
// context_when_allocated whatever is recorded). Modules make parameters and
// buffers in __init__ (torch/nn/modules), optimizers their state within step,
// in _init_group (torch/optim/adam.py, sgd.py), and the first matrix
// multiplication of a thread takes cuBLAS's workspace
// (aten/src/ATen/cuda/CublasHandlePool.cpp).
func (c *classifier) keptFrom(l *Lifetime) Category {
	if l.Stack == 0 {
		return Unknown
	}
	switch p := c.tt.byStack[l.Stack]; {
	case p == build:
		return Parameter
	case p == step:
		return OptimizerState
	case p != between && cublasWorkspaces[l.Size]:
		return Workspace
	default:
		return Unknown
	}
}

// initial classifies what was live before the recording began. What is freed
// by zero_grad is a gradient. What is never freed may be a parameter, optimizer
// state or a workspace. Where no stack tells, the gradients of one backward
// do: each has the size of its parameter, and optimizers keep one (momentum)
// or two (Adam) more of that size. So, where gradients are known and no state
// of the optimizer is, the copies beyond the first are state. Which of several
// blocks of one size is which cannot be known; the sums by category are right
// all the same.
func (c *classifier) initial() {
	kept := make(map[int64]int) // allocations never freed of which no stack tells, by size
	seen := make(map[int64]int) // parameters, and what was counted as state, by size
	for i := range c.t.Initial {
		l := &c.all[i]
		switch {
		case c.freedIn(l, zeroGrad):
			l.For = Gradient
		case l.Freed == len(c.t.Events) && l.For == Unknown:
			l.For = c.keptFrom(l)
		}
		switch {
		case l.For == Parameter:
			seen[l.Size]++
		case l.For == Unknown && l.Freed == len(c.t.Events):
			kept[l.Size]++
		}
	}
	c.count(kept, seen)
}

// count classifies what is left by counting.
func (c *classifier) count(kept, seen map[int64]int) {
	gradients := c.gradientSizes()
	copies := c.stateCopies(gradients, kept)
	for i := range c.t.Initial {
		l := &c.all[i]
		if l.For != Unknown || l.Freed < len(c.t.Events) {
			continue
		}
		n := gradients[l.Size]
		switch k := seen[l.Size]; {
		case k < n:
			l.For = Parameter
		case k < n*(1+copies):
			l.For = OptimizerState
		default:
			l.For = c.unpaired(l, len(gradients) > 0)
		}
		seen[l.Size]++
	}
}

// unpaired classifies an allocation that was live before, is never freed, and
// has no gradient: input, if a model is seen to run and the stack says that the
// user's loop made it; a frozen parameter or a buffer, if a model is seen to
// run at all; or a workspace, if it has that size. Weights can have that size
// too, so without gradients to distinguish them it stays unknown.
func (c *classifier) unpaired(l *Lifetime, gradients bool) Category {
	switch {
	case l.Stack != 0 && c.tt.byStack[l.Stack] == between && len(c.tt.forward) > 0:
		return Input
	case cublasWorkspaces[l.Size] && gradients:
		return Workspace
	case cublasWorkspaces[l.Size] || len(c.tt.forward) == 0 && !gradients:
		return Unknown
	default:
		return Parameter
	}
}

// gradientSizes counts the gradients by size that are alive at the end of the
// first backward that made some or, where the recording begins after it, in
// the beginning.
func (c *classifier) gradientSizes() map[int64]int {
	out := make(map[int64]int)
	first := slices.IndexFunc(c.all, func(l Lifetime) bool { return l.For == Gradient })
	if first < 0 {
		return out
	}
	end := c.all[first].Alloc
	for end >= 0 && end+1 < len(c.tt.span) && c.tt.span[end+1] == c.tt.span[end] {
		end++
	}
	for i := range c.all {
		if l := &c.all[i]; l.For == Gradient && l.LiveAt(end) {
			out[l.Size]++
		}
	}
	return out
}

// stateCopies returns how many copies of the parameters the optimizer holds:
// the largest number for which the blocks are there.
func (c *classifier) stateCopies(gradients, kept map[int64]int) int {
	for i := range c.all {
		if c.all[i].For == OptimizerState && c.all[i].Size > 8 {
			return 0
		}
	}
	for copies := 2; copies > 0; copies-- {
		if enough(gradients, kept, 1+copies) {
			return copies
		}
	}
	return 0
}

// enough reports whether kept holds each size of one as often as it says,
// times n.
func enough(one, kept map[int64]int, n int) bool {
	for size, count := range one {
		if kept[size] < count*n {
			return false
		}
	}
	return len(one) > 0
}

// stacksThrough says for each stack whether a function of that name is on it.
func (t *Trace) stacksThrough(name string) []bool {
	out := make([]bool, t.Stacks.Len())
	for id := range out {
		for _, f := range t.Stacks.IDs(StackID(id)) {
			if t.Stacks.frames[f].Name == name {
				out[id] = true
				break
			}
		}
	}
	return out
}
