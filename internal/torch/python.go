package torch

import "slices"

// This file is how Python keeps tensors alive, so that model code can be
// written as the Python it stands for:
//
//	f := t.Enter(hidden)                        // def forward(self, hidden):
//	h := f.Let(t.Linear(hidden, m.Dense))       //     h = self.dense(hidden)
//	h.Set(t.Dropout(h, m.P))                    //     h = self.dropout(h)
//	return f.Return(h)                          //     return h
//
// An operator gives back a Value, which is a temporary: whatever it is passed
// to drops it when done. A Var is a name: it keeps its tensor until it is set
// anew, deleted, or its function returns.

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

// Tensor returns what the name stands for.
func (v *Var) Tensor() *Tensor { return v.tensor }

// Set binds the name anew; what it stood for is dropped after.
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

// Borrow lets a tensor that something else keeps be passed on: a parameter, a
// tensor in a structure.
func Borrow(x *Tensor) X { return &Var{tensor: x} }

// InPlace makes a name for a tensor that something else keeps, for an operator that
// changes it in place.
func (t *Torch) InPlace(x *Tensor) *Var { return &Var{t: t, tensor: x} }

// own returns a reference of the caller's own to what x stands for.
func (t *Torch) own(x X) *Tensor {
	tensor, temporary := x.take()
	if tensor != nil && !temporary {
		t.retain(tensor)
	}
	return tensor
}

// read returns what x stands for; the operator calls done when it is through.
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
	outer  *module          // that ran before, nil if it still does
	layer  *module          // whose hooks run around the function, nil for none
	names  func() []*Tensor // that the function refers to, where something else keeps its names

	fewArgs   [2]X // what most have
	fewLocals [6]*Var
}

// Enter begins a function. Temporaries among its arguments live until it has
// returned: nn.Module.__call__ holds them in a tuple all the while.
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

// Naming says what the function refers to, where something else keeps its names.
func (f *Frame) Naming(names func() []*Tensor) *Frame {
	f.names = names
	return f
}

// Return ends the function. The names go in the order in which they were made,
// then the arguments.
func (f *Frame) Return(x X) Value {
	result := f.t.own(x)
	f.end(result)
	return Value{result}
}

// End ends a function that returns nothing.
func (f *Frame) End() { f.end(nil) }

func (f *Frame) end(result *Tensor) {
	for _, v := range f.locals {
		v.Del()
	}
	if f.layer != nil {
		f.t.parallel.postForward(f.layer, result)
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

// Keep returns a value that outlives the function, besides the one it returns.
func (f *Frame) Keep(x X) Value { return Value{f.t.own(x)} }

// Release drops a tensor that the caller owns.
func (t *Torch) Release(x *Tensor) { t.release(x) }

// Borrow lets a value be used without using it up: something else drops it.
func (v Value) Borrow() X { return Borrow(v.tensor) }

// Hold is a reference of its own to what a name or a value stands for.
func (t *Torch) Hold(x X) Value { return Value{t.own(x)} }

// Drop gives a value up that something held on to.
func (t *Torch) Drop(v Value) {
	if v.tensor != nil {
		t.release(v.tensor)
	}
}

// ValueOf is a temporary of a tensor that the caller owns.
func ValueOf(x *Tensor) Value { return Value{x} }
