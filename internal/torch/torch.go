// Package torch is a symbolic PyTorch: tensors without numbers, on which a
// training step runs as PyTorch runs it and issues the allocations and frees
// that PyTorch would, in PyTorch's order, into a trace.
//
// Three parts of PyTorch free memory, each by its own rules:
//
//   - Python (python.go) keeps a tensor as long as a name or a temporary
//     refers to it: a name until it is rebound or its function returns, a
//     temporary until the call it is passed to returns.
//   - Autograd (node.go, engine.go) keeps what backward needs in nodes, and
//     runs them by sequence number.
//   - C++ (the op files) keeps temporaries until the end of their scope.
//
// Each operator's file says what its forward allocates, what it saves, and what
// its backward allocates, and cites the PyTorch 2.11 source each rule comes
// from. Sizes are exact; the allocator rounds them.
package torch

import (
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
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
	// NoWildGuesses makes a convolution an Interruption if none of its window and stride was
	// ever measured.
	NoWildGuesses bool
	// Budget limits the work of the process, nil for no limit. A process that
	// exceeds it panics with an Interruption.
	Budget *workbudget.Budget

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
	parameters []*Tensor    // the optimizer's, on the card
	linears    []*Linear    // in the order in which they were made
	stacks     []*Stack     // likewise
	embeddings []*Embedding // likewise
	built      []*Tensor    // the model's tensors, alive or not
	wholes     int64        // elements of all parameters, if this rank has only parts
	work       Work
	thread     int // 0 is Python's, 1 is the engine's for the device
	frames     []*Frame
	module     *module         // running
	root       *module         // the model, and what is outside it
	checkpoint *checkpoint     // the block that runs for the first time
	second     *secondRun      // the block that runs again
	stream     Stream          // the current one
	meta       *metaDevice     // the current device, nil for the card
	onCPU      bool            // operators run on the CPU
	parallel   wrapper         // around modules, nil for none
	barrier    *Tensor         // of the latest barrier
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
	t.trace.Events = (*eventBuffers.Get().(*[]trace.Event))[:0]
	return t
}

// Interruption is the panic of a process that must stop. It is a panic because
// operators, like PyTorch's, return no errors; package predict recovers it as an
// error.
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
		t.meta.add(t, s, bytes)
		return s
	}
	t.fill(s, bytes)
	return s
}

// fill gives an empty storage memory, of the current stream's pool.
func (t *Torch) fill(s *storage, bytes int64) {
	if bytes == 0 || t.onCPU {
		return // an empty tensor never reaches the allocator
	}
	s.id, s.event, s.stream = t.next, len(t.trace.Events), t.stream
	t.next++
	t.trace.Events = append(t.trace.Events, trace.Event{
		Action: trace.Alloc, Size: bytes, ID: s.id, For: t.category, Stack: t.module.stack, Stream: uint16(s.stream),
	})
	if t.category != trace.Parameter && t.category != trace.Input {
		t.Launch()
	}
}

func (t *Torch) drop(s *storage) {
	s.refs--
	if s.refs > 0 {
		return
	}
	if t.meta != nil {
		t.meta.remove(s)
	}
	t.clear(s)
}

// clear frees a storage's memory even if it is still referenced:
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
