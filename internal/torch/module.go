package torch

import (
	"strconv"

	"memorymark/internal/trace"
)

// This file records which module of the model requests memory, so that a trace
// can be grouped by module as a recording is by stack:
//
//	f := t.Enter(hidden).In("attn")            // self.attn(hidden)
//	logits := f.Let(t.In("lm_head", head))     // self.lm_head(...)
//
// Memory of backward belongs to the module whose forward made the node, and a
// parameter to the module that reads it first. Names are the attributes of the
// original.

// module is a part of the model: its path from the root, as in named_modules(),
// and the stack that represents it.
type module struct {
	path  string
	stack trace.StackID
	parts map[part]*module
	layer string // the path of the outermost numbered module it is in, "" for none
}

type part struct {
	name  string
	index int // of a ModuleList, else none
}

const none = -1

// part returns a submodule of the running module.
func (t *Torch) part(p part) *module {
	if m := t.module.parts[p]; m != nil {
		return m
	}
	path := p.name
	if t.module.path != "" {
		path = t.module.path + "." + path
	}
	if p.index != none {
		path += "." + strconv.Itoa(p.index)
	}
	stacks := t.trace.Stacks
	m := &module{path: path, layer: t.module.layer}
	if m.layer == "" && p.index != none {
		m.layer = path
	}
	m.stack = stacks.Add([]trace.FrameID{stacks.AddFrame(trace.Frame{File: t.Name, Name: path})})
	if t.module.parts == nil {
		t.module.parts = make(map[part]*module)
	}
	t.module.parts[p] = m
	return m
}

// In attributes the function to a module until it returns; index is that of a
// ModuleList.
func (f *Frame) In(name string, index ...int) *Frame {
	p := part{name, none}
	if len(index) > 0 {
		p.index = index[0]
	}
	f.outer = f.t.module
	f.t.module = f.t.part(p)
	if f.t.isLayer(f.t.module) {
		f.layer = f.t.module
		f.t.parallel.preForward(f.layer)
	}
	return f
}

// InModel attributes the function to the whole model, by the name of its class: what its
// own forward makes is no part's. Parts are named from there as from the root.
func (f *Frame) InModel(class string) *Frame {
	f.In(class)
	f.t.module.path = ""
	return f
}

// In calls a module.
func (t *Torch) In(name string, call func() Value) Value {
	outer := t.module
	t.module = t.part(part{name, none})
	out := call()
	t.module = outer
	return out
}

// inModule attributes a call to a module other than the running one.
func (t *Torch) inModule(m *module, call func()) {
	outer := t.module
	t.module = m
	call()
	t.module = outer
}

// Claim makes the running module the owner of a parameter that was not read before.
func (t *Torch) Claim(p *Tensor) { t.claim([]*Tensor{p}) }

// claim makes the running module the owner of parameters that were not read
// before.
func (t *Torch) claim(inputs []*Tensor) {
	for _, x := range inputs {
		if x != nil && x.unread {
			x.unread = false
			x.owner = t.module
			if x.storage.id != trace.None {
				t.trace.Events[x.storage.event].Stack = t.module.stack
			}
		}
	}
}
