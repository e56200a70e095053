package trace

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// stacks are the stacks that scripts name, innermost frame first.
var stacks = map[string]string{
	"init":    "torch/nn/modules/linear.py:106:__init__ model.py:5:__init__ train.py:10:<module>",
	"forward": "torch/nn/modules/linear.py:134:forward torch/nn/modules/module.py:1790:_call_impl model.py:20:forward torch/nn/modules/module.py:1790:_call_impl train.py:30:step train.py:50:<module>",
	"again":   "torch/nn/modules/linear.py:134:forward torch/nn/modules/module.py:1790:_call_impl torch/utils/checkpoint.py:1173:unpack_hook",
	"engine":  "", // the autograd engine's thread has no Python stack
	"grads":   "torch/autograd/__init__.py:231:_make_grads torch/_tensor.py:631:backward train.py:31:step train.py:50:<module>",
	"python":  "kernels.py:9:backward torch/autograd/function.py:315:apply",
	"state":   "torch/optim/adam.py:178:_init_group torch/optim/adam.py:238:step train.py:32:step train.py:50:<module>",
	"step":    "torch/optim/adam.py:700:_multi_tensor_adam torch/optim/adam.py:238:step train.py:32:step train.py:50:<module>",
	"zero":    "torch/optim/optimizer.py:1066:zero_grad train.py:33:step train.py:50:<module>",
	"loop":    "train.py:29:step train.py:50:<module>",
	"batch":   "train.py:12:batch train.py:49:<module>",
}

// parseScript makes a trace of lines such as
//
//	before w 400            w is live before the first event; a stack may follow
//	alloc a 100 forward     a is allocated under the stack "forward"
//	free a engine           its free is requested and completed
//	request a, complete a   the two halves apart
//	oom 500 forward         an allocation fails
//	begin X, end X          marks
//
// and links it.
func parseScript(t *testing.T, script string) *Trace {
	t.Helper()
	p := scriptParser{
		t: t, trace: New(0, NewTables()),
		addr: make(map[string]uint64), size: make(map[string]int64), state: make(map[uint64]Block),
	}
	for line := range strings.Lines(script) {
		if fields := strings.Fields(line); len(fields) > 0 {
			p.line(fields)
		}
	}
	p.final()
	p.trace.Link()
	if err := p.trace.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return p.trace
}

type scriptParser struct {
	t     *testing.T
	trace *Trace
	addr  map[string]uint64
	size  map[string]int64
	state map[uint64]Block // what is live, by address
}

func (p *scriptParser) line(f []string) {
	p.t.Helper()
	switch f[0] {
	case "before":
		p.place(f[1], f[2])
		p.live(f[1], Allocated)
		if len(f) > 3 {
			b := p.state[p.addr[f[1]]]
			b.Stack = p.stack(f[3])
			p.state[b.Addr] = b
		}
	case "alloc":
		p.place(f[1], f[2])
		p.event(Alloc, f[1], f[3:])
		p.live(f[1], Allocated)
	case "free":
		p.event(FreeRequested, f[1], f[2:])
		p.event(FreeCompleted, f[1], f[2:])
		delete(p.state, p.addr[f[1]])
	case "request":
		p.event(FreeRequested, f[1], f[2:])
		p.live(f[1], PendingFree)
	case "complete":
		p.event(FreeCompleted, f[1], f[2:])
		delete(p.state, p.addr[f[1]])
	case "oom":
		p.place("oom", f[1])
		p.event(OutOfMemory, "oom", f[2:])
	case "begin", "end":
		p.trace.Marks = append(p.trace.Marks, Mark{Name: f[1], Event: len(p.trace.Events), End: f[0] == "end"})
	default:
		p.t.Fatalf("script: unknown line %q", f)
	}
}

func (p *scriptParser) live(name string, s State) {
	addr, size := p.addr[name], p.size[name]
	p.state[addr] = Block{Addr: addr, Size: size, Requested: size, State: s}
}

// final puts each allocation that is live at the end in a segment of its own.
func (p *scriptParser) final() {
	p.trace.Final = []Segment{}
	for _, addr := range slices.Sorted(maps.Keys(p.state)) {
		b := p.state[addr]
		p.trace.Final = append(p.trace.Final, Segment{Addr: addr, Size: b.Size, Blocks: []Block{b}})
	}
}

// place gives a name a new address.
func (p *scriptParser) place(name, size string) {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	p.addr[name] = uint64(len(p.addr)+1) << 40
	p.size[name] = n
}

func (p *scriptParser) event(a Action, name string, stack []string) {
	p.t.Helper()
	e := Event{Action: a, Addr: p.addr[name], Size: p.size[name]}
	if e.Addr == 0 {
		p.t.Fatalf("script: %q was not allocated", name)
	}
	if len(stack) > 0 {
		e.Stack = p.stack(stack[0])
	}
	p.trace.Events = append(p.trace.Events, e)
}

func (p *scriptParser) stack(name string) StackID {
	p.t.Helper()
	text, ok := stacks[name]
	if !ok {
		p.t.Fatalf("script: unknown stack %q", name)
	}
	var ids []FrameID
	for f := range strings.FieldsSeq(text) {
		parts := strings.Split(f, ":")
		line, err := strconv.Atoi(parts[1])
		if err != nil {
			p.t.Fatal(err)
		}
		ids = append(ids, p.trace.Stacks.AddFrame(Frame{File: parts[0], Line: line, Name: parts[2]}))
	}
	return p.trace.Stacks.Add(ids)
}
