package torch

import "slices"

// This file models how Python keeps tensors alive, so that model code reads
// like the Python it models:
//
//	f := t.Enter(hidden)                        // def forward(self, hidden):
//	h := f.Let(t.Linear(hidden, m.Dense))       //     h = self.dense(hidden)
//	h.Set(t.Dropout(h, m.P))                    //     h = self.dropout(h)
//	return f.Return(h)                          //     return h
//
// An operator returns a Value, which is a temporary: whatever it is passed to
// drops it when done. A Var is a name: it keeps its tensor until it is rebound,
// deleted, or its function returns.

// X is what an operator takes: a temporary or a name.
type X interface {
	take() (x *Tensor, temporary bool)
}

// Value is a temporary, or nothing.
type Value struct{ tensor *Tensor }

func (v Value) take() (*Tensor, bool) { return v.tensor, v.tensor != nil }

// Tensor returns the temporary.
func (v Value) Tensor() *Tensor { return v.tensor }

// Var is a name in a function.
type Var struct {
	t      *Torch
	tensor *Tensor // nil while unbound
}

func (v *Var) take() (*Tensor, bool) { return v.tensor, false }

// Tensor returns the tensor that the name refers to.
func (v *Var) Tensor() *Tensor { return v.tensor }

// Set rebinds the name, then drops what it referred to.
func (v *Var) Set(x X) {
	old := v.tensor
	v.tensor = v.t.own(x)
	if old != nil {
		v.t.release(old)
	}
}

// Del deletes the name.
func (v *Var) Del() {
	if old := v.tensor; old != nil {
		v.tensor = nil
		v.t.release(old)
	}
}

// Borrow passes a tensor that something else keeps, such as a parameter or a
// tensor in a structure.
func Borrow(x *Tensor) X { return &Var{tensor: x} }

// InPlace makes a name for a tensor that something else keeps, for an operator that
// changes it in place.
func (t *Torch) InPlace(x *Tensor) *Var { return &Var{t: t, tensor: x} }

// own returns a new reference, owned by the caller, to the tensor of x.
func (t *Torch) own(x X) *Tensor {
	tensor, temporary := x.take()
	if tensor != nil && !temporary {
		t.retain(tensor)
	}
	return tensor
}

// read returns the tensor of x; the operator calls done when it is finished.
func read(x X) *Tensor {
	tensor, _ := x.take()
	return tensor
}

// done drops the temporaries among an operator's arguments, as the interpreter
// does when the call returns.
func (t *Torch) done(args ...X) {
	for _, x := range args {
		if tensor, temporary := x.take(); temporary {
			t.release(tensor)
		}
	}
}

// Frame is a running Python function.
type Frame struct {
	t      *Torch
	args   []X
	locals []*Var
	outer  *module          // the caller's module, nil if it is the same
	layer  *module          // whose hooks run around the function, nil for none
	names  func() []*Tensor // that the function refers to, where something else keeps its names

	fewArgs   [2]X // of most functions
	fewLocals [6]*Var
}

// Enter begins a function. Temporaries among its arguments live until it has
// returned: nn.Module.__call__ holds them in a tuple.
func (t *Torch) Enter(args ...X) *Frame {
	f := t.calls.next()
	f.t = t
	f.args, f.locals = append(f.fewArgs[:0], args...), f.fewLocals[:0]
	t.frames = append(t.frames, f)
	return f
}

// Let makes a name.
func (f *Frame) Let(x X) *Var {
	v := f.t.vars.next()
	v.t, v.tensor = f.t, f.t.own(x)
	f.locals = append(f.locals, v)
	return v
}

// Naming sets what the function refers to if something else keeps its names.
func (f *Frame) Naming(names func() []*Tensor) *Frame {
	f.names = names
	return f
}

// Return ends the function. Names are freed in the order in which they were
// made, then the arguments.
func (f *Frame) Return(x X) Value {
	result := f.t.own(x)
	f.end(result)
	return Value{result}
}

// End ends a function whose results are the caller's, or that returns nothing.
func (f *Frame) End(results ...*Tensor) { f.end(results...) }

func (f *Frame) end(results ...*Tensor) {
	for _, v := range f.locals {
		v.Del()
	}
	if f.layer != nil {
		f.t.parallel.postForward(f.layer, results...)
	}
	f.t.done(f.args...)
	if f.outer != nil {
		f.t.module = f.outer
	}
	for i, g := range slices.Backward(f.t.frames) {
		if f == g {
			f.t.frames = slices.Delete(f.t.frames, i, i+1)
			break
		}
	}
}

// Keep returns a value that outlives the function, in addition to the one it returns.
func (f *Frame) Keep(x X) Value { return Value{f.t.own(x)} }

// Release drops a tensor that the caller owns.
func (t *Torch) Release(x *Tensor) { t.release(x) }

// Borrow passes a value without consuming it: something else drops it.
func (v Value) Borrow() X { return Borrow(v.tensor) }

// Hold returns a new reference to the tensor of a name or a value.
func (t *Torch) Hold(x X) Value { return Value{t.own(x)} }

// Drop releases a value that was held.
func (t *Torch) Drop(v Value) {
	if v.tensor != nil {
		t.release(v.tensor)
	}
}

// ValueOf makes a temporary of a tensor that the caller owns.
func ValueOf(x *Tensor) Value { return Value{x} }
