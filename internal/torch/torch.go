// Package torch is a symbolic PyTorch: tensors without numbers, on which a
// training step runs as PyTorch runs it and issues the allocations and frees
// that PyTorch would, in PyTorch's order, into a trace.
//
// Three worlds meet in a step, and each frees memory by its own rules:
//
//   - Python (python.go) keeps a tensor as long as a name or a temporary
//     refers to it: a name until it is bound anew or its function returns, a
//     temporary until the call it is passed to returns.
//   - Autograd (node.go, engine.go) keeps what backward needs in nodes, and
//     runs them by sequence number.
//   - C++ (the op files) keeps temporaries until the end of their scope.
//
// Each operator's file says what its forward allocates, what it saves, and
// what its backward allocates, and cites the PyTorch 2.11 source each rule
// comes from. Sizes are exact; rounding them is the allocator's business.
package torch

import (
	"memorymark/internal/effort"
	"memorymark/internal/trace"
)

// Torch is a process: its allocations so far, and the state of its threads.
type Torch struct {
	Version Version // of PyTorch
	Name    string  // of the model, for the stacks of the trace
	TF32    bool    // allow_tf32: float32 may be computed with ten bits of mantissa
	Ranks   int64   // of the process group, 0 for none
	// InputsRequireGrad is enable_input_require_grads(): what an input embedding
	// returns needs a gradient, frozen or not (transformers/modeling_utils.py).
	InputsRequireGrad bool
	// Effort is what the process may take, nil without a bound. One that takes
	// more is interrupted: it panics with an Interruption.
	Effort *effort.Effort

	device     Device
	questions  *questions // about the device, nil if they are not kept
	trace      *trace.Trace
	next       trace.ID       // of the next allocation
	category   trace.Category // what new memory is for
	sequence   int64          // of the next autograd node
	noGrad     bool
	mapped8Bit bool // the code of 8-bit blocks is there
	autocast   *autocast
	threads    [2]threadState
	parameters []*Tensor    // that the optimizer has on the card
	linears    []*Linear    // in the order in which they were made
	stacks     []*Stack     // likewise
	embeddings []*Embedding // likewise
	built      []*Tensor    // the model's tensors, alive or not
	wholes     int64        // elements of all parameters, where this rank has parts
	work       Work
	thread     int // 0 is Python's, 1 is the engine's for the device
	frames     []*Frame
	module     *module         // that now runs
	root       *module         // the model, and what is outside it
	checkpoint *checkpoint     // the block that runs for the first time
	second     *secondRun      // the block that runs again
	stream     Stream          // the current one
	meta       *metaDevice     // the current device, nil for the card
	parallel   wrapper         // around modules, nil for none
	barrier    *Tensor         // of the latest barrier
	unlaunched bool            // no kernel has run
	callbacks  []func()        // that run when backward ends
	scripts    map[string]bool // functions of TorchScript that ran

	*heap
}

// threadState is what a thread has made for itself and keeps.
type threadState struct {
	cublas, cublasLt bool // workspaces of its handle
}

// Reference is the version of PyTorch that the files of this package cite.
var Reference = Version{2, 11}

// New returns a process that has allocated nothing.
func New(d Device) *Torch {
	t := &Torch{
		device: d, Version: Reference, trace: trace.New(0, trace.NewTables()), root: &module{},
		heap: heaps.Get().(*heap),
	}
	t.module = t.root
	t.trace.Events = (*eventRooms.Get().(*[]trace.Event))[:0]
	return t
}

// Interruption is what a process panics with that is not to go on. It is a panic
// because operators, like PyTorch's, have no errors to pass on; package predict
// makes one of it.
type Interruption struct{ Err error }

// Trace returns what has been allocated and freed so far.
func (t *Torch) Trace() *trace.Trace { return t.trace }

// As runs f with new memory counted as a category.
func (t *Torch) As(c trace.Category, f func()) {
	old := t.category
	t.category = c
	f()
	t.category = old
}

// storage is memory that tensors share.
type storage struct {
	id     trace.ID // None if it is empty
	event  int      // that allocated it
	refs   int
	stream Stream // whose pool it comes from
}

func (t *Torch) allocate(bytes int64) *storage {
	s := t.storages.next()
	s.id, s.refs = trace.None, 1
	if t.meta != nil {
		t.meta.made(t, s, bytes)
		return s
	}
	t.fill(s, bytes)
	return s
}

// fill gives an empty storage memory, of the current stream's pool.
func (t *Torch) fill(s *storage, bytes int64) {
	if bytes == 0 {
		return // an empty tensor never reaches the allocator
	}
	s.id, s.event, s.stream = t.next, len(t.trace.Events), t.stream
	t.next++
	t.trace.Events = append(t.trace.Events, trace.Event{
		Action: trace.Alloc, Size: bytes, ID: s.id, For: t.category, Stack: t.module.stack, Stream: uint16(s.stream),
	})
	if t.unlaunched && t.category != trace.Parameter && t.category != trace.Input {
		t.Launch()
	}
}

func (t *Torch) drop(s *storage) {
	s.refs--
	if s.refs > 0 {
		return
	}
	if t.meta != nil {
		t.meta.gone(s)
	}
	t.clear(s)
}

// clear gives a storage's memory back, whoever still refers to it:
// untyped_storage().resize_(0).
func (t *Torch) clear(s *storage) {
	if s.id == trace.None {
		return
	}
	t.trace.Events = append(t.trace.Events,
		trace.Event{Action: trace.FreeRequested, ID: s.id, Stack: t.module.stack, Stream: uint16(s.stream)},
		trace.Event{Action: trace.FreeCompleted, ID: s.id, Stack: t.module.stack, Stream: uint16(s.stream)})
	s.id = trace.None
}

// Mark names a point of the trace.
func (t *Torch) Mark(name string, end bool) {
	t.trace.Marks = append(t.trace.Marks, trace.Mark{Name: name, End: end, Event: len(t.trace.Events)})
}
