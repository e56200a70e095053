package pymodule

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
)

//go:embed program.py
var programScript string

// nnSource is modules of torch.nn that are made of others.
//
//go:embed nn.py
var nnSource string

// composed is the module that nnSource is.
const composed = "torch.nn.modules"

// ProgramScript is the Python program that reads a file of a user's own and what it
// imports from its folder. It runs nothing of them:
//
//	python -I -c SCRIPT FILE > trees.zip
var ProgramScript = "__name__ = 'trees'\n" + Script + "\nNN = " + strconv.Quote(nnSource) + "\n" + programScript

// Program is a function of a user's own file, train.py:make (models.Program). It returns
// what the prober's user.py takes: a model, and if it likes batch, optimizer and loss.
type Program struct {
	library          *Library
	module, function string
	own              []string // modules that are the user's
}

// NewProgram makes a program of what ProgramScript wrote. Modules of transformers come
// from the source that MemoryMark was built with.
func NewProgram(data []byte, module, function string) (*Program, error) {
	own, err := ReadTrees(data)
	if err != nil {
		return nil, err
	}
	if own.files[module] == nil {
		return nil, fmt.Errorf("the syntax trees have no module %s", module)
	}
	p := &Program{module: module, function: function, own: slices.DeleteFunc(slices.Clone(own.names), func(name string) bool { return name == composed })}
	trees := own
	if base, err := EmbeddedTrees(); err == nil && base != nil {
		trees = base.with(own)
	}
	p.library = NewLibrary(trees)
	p.library.own = p.own
	return p, nil
}

// with are trees and others, which come first.
func (t *Trees) with(own *Trees) *Trees {
	both := &Trees{Version: t.Version, files: maps.Clone(t.files), read: make(map[string]*moduleTree)}
	maps.Copy(both.files, own.files)
	both.names = slices.Sorted(maps.Keys(both.files))
	return both
}

// made is what the function returned.
type made struct {
	m                            *Machine
	model                        *instance
	batch, optimizer, loss, kept value // kept is the batch on the card
}

// Make calls the function, and moves the model to the card as the prober does.
func (p *Program) Make(t *torch.Torch, r models.Run) (model *models.Model, err error) {
	m := p.library.machine()
	defer m.catch(&err)
	for _, name := range p.own { // whatever an earlier process left in its modules
		delete(m.modules, name)
	}
	m.t, m.budget, m.dtype, m.training, m.hosts = t, t.Budget, torch.Float32, true, true
	x := p.make(m)
	t.NoWildGuesses = true // the emulated card knows more of what cuDNN takes
	m.model = x.model
	m.nameLayers(x.model)
	m.listParameters(x.model)
	m.toCard(x.model)
	if r.DType != torch.Float32 {
		m.cast(x.model, r)
	}
	m.setMode(x.model, r.Train)
	model = &models.Model{
		Feed: func(n int64) { x.interruptible(func() { x.feed(n, r.DType) }) },
		Forward: func(*torch.Torch, *models.Batch) (out models.Output) {
			x.interruptible(func() { out = x.forward() })
			return out
		},
		End: func() { p.library.idle.Put(m) },
	}
	if x.optimizer != nil {
		made := m.call(x.optimizer, m.callMethod(x.model, "parameters"))
		o, ok := made.(*optimizer)
		if !ok {
			return nil, failure("the optimizer is a %s, which is not known", typeName(made))
		}
		model.Optimizer = o.on(t)
	}
	return model, nil
}

// interruptible says what a pass fails with, and where: what package torch does not know
// happens at a line of the program, too.
func (x *made) interruptible(f func()) {
	m := x.m
	defer func() {
		switch r := recover().(type) {
		case nil:
		case torch.Interruption:
			var located *Error
			if m.frame == nil || errors.As(r.Err, &located) || errors.Is(r.Err, workbudget.ErrTooMuch) {
				panic(r)
			}
			located = &Error{What: r.Err.Error()}
			m.locate(located)
			panic(torch.Interruption{Err: located})
		default:
			panic(r)
		}
	}()
	if _, err := m.attempt(func() value { f(); return nil }); err != nil {
		panic(torch.Interruption{Err: err})
	}
}

// make calls the function and names what it returned.
func (p *Program) make(m *Machine) *made {
	f, ok := m.module(p.module).(*namespace).names[p.function]
	if !ok {
		panic(&Error{What: fmt.Sprintf("%s has no function %s()", p.library.trees.module(p.module).file, p.function)})
	}
	x := &made{m: m}
	parts := map[string]*value{"batch": &x.batch, "optimizer": &x.optimizer, "loss": &x.loss}
	names := []string{"model", "batch", "optimizer", "loss"}
	model := m.call(f)
	switch v := model.(type) {
	case *dict:
		for i, k := range v.keys {
			name, _ := k.(string)
			if !slices.Contains(names, name) {
				panic(&Error{What: fmt.Sprintf("%s() returned the key %s; known are %s", p.function, m.repr(k), strings.Join(names, ", "))})
			}
			if parts[name] != nil && v.values[i] != (none{}) {
				*parts[name] = hold(v.values[i])
			}
		}
		model, _ = v.get("model")
	default:
		items, several := itemsIn(v)
		if !several {
			break
		}
		if len(items) == 0 || len(items) > len(names) {
			panic(&Error{What: fmt.Sprintf("%s() returned %d things; return model, batch, optimizer, loss, or the first of them", p.function, len(items))})
		}
		model = items[0]
		for i, item := range items[1:] {
			if item != (none{}) {
				*parts[names[i+1]] = hold(item)
			}
		}
	}
	x.model, ok = model.(*instance)
	if !ok || !x.model.isModule() {
		panic(&Error{What: fmt.Sprintf("%s() returned a %s where the model should be", p.function, typeName(model))})
	}
	return x
}

// feed makes a batch on the CPU and moves it to the card. A model in bfloat16 gets
// numbers of that type.
func (x *made) feed(n int64, dtype torch.DType) {
	m := x.m
	old := x.kept
	x.m.t.As(trace.Input, func() {
		given := x.given(n)
		x.kept = m.moved(given)
		m.drop(given)
		if dtype != torch.Float32 {
			whole := x.kept
			x.kept = m.castFloats(whole, dtype)
			m.drop(whole)
		}
	})
	m.drop(old)
}

// given is a batch of n samples: of a function of their number, or of a dataset or one
// sample, which are collated.
func (x *made) given(n int64) value {
	m := x.m
	if x.batch == nil {
		return x.ownInputs(n)
	}
	if m.isInstance(x.batch, m.types["abc.Callable"]) {
		return m.call(x.batch, n)
	}
	sample := x.batch
	switch s := sample.(type) {
	case *list:
		sample = m.item(s, int64(0))
	case *instance:
		if s.class.lookup("__getitem__") != nil && s.class.lookup("__len__") != nil {
			sample = m.item(s, int64(0))
		}
	}
	return m.collated(sample, n)
}

// ownInputs are what a transformers model says it takes (the prober's own_inputs).
func (x *made) ownInputs(int64) value {
	panic(&Error{What: "what the model takes is not known; return a function batch(n) next to it"})
}

// collated is default_collate of n equal samples.
func (m *Machine) collated(v value, n int64) value {
	return m.mapTensors(v, func(v value) value {
		switch s := v.(type) {
		case *tensor:
			return &tensor{refs: refs{1}, x: m.t.OnHost(s.x.DType, append([]int64{n}, s.x.Shape...)...), fact: s.fact, host: true}
		case int64:
			return &tensor{refs: refs{1}, x: m.t.OnHost(torch.Int64, n), host: true}
		case float64:
			panic(failure("a batch of numbers of double precision is not known"))
		}
		panic(failure("a batch of a %s is not known", typeName(v)))
	})
}

// moved is a batch on the card.
func (m *Machine) moved(v value) value {
	return m.mapTensors(v, func(v value) value {
		if x, ok := v.(*tensor); ok && x.host {
			return m.known(m.t.Full(x.x.DType, x.x.Shape...), x.fact)
		}
		return hold(v)
	})
}

// castFloats is a batch whose numbers are of another type.
func (m *Machine) castFloats(v value, dtype torch.DType) value {
	return m.mapTensors(v, func(v value) value {
		if x, ok := v.(*tensor); ok && x.x.DType.IsFloat() {
			return m.known(m.t.To(in(x), dtype), x.fact)
		}
		return hold(v)
	})
}

// mapTensors makes a batch of another: mappings become dictionaries, sequences tuples.
func (m *Machine) mapTensors(v value, each func(v value) value) value {
	switch s := v.(type) {
	case *tuple, *list:
		items, _ := itemsIn(v)
		out := newTuple()
		for _, item := range items {
			out.items = append(out.items, m.mapTensors(item, each))
		}
		return out
	case *dict:
		return m.mapItems(s, each)
	case *instance:
		if s.items != nil {
			return m.mapItems(s.items, each)
		}
	}
	return each(v)
}

func (m *Machine) mapItems(d *dict, each func(v value) value) value {
	out := newDict()
	for i, k := range d.keys {
		out.set(m, hold(k), m.mapTensors(d.values[i], each))
	}
	return out
}

// forward calls the model, and what makes the loss where gradients are wanted.
func (x *made) forward() models.Output {
	m := x.m
	var a args
	switch b := x.kept.(type) {
	case *dict:
		for i, k := range b.keys {
			a.names, a.named = append(a.names, m.text(k)), append(a.named, hold(b.values[i]))
		}
	case *tuple:
		a.pos = holdAll(b.items)
	default:
		a.pos = []value{hold(b)}
	}
	result := m.callOwned(x.model, a)
	var loss *tensor
	if m.t.GradEnabled() {
		loss = x.lossOf(result)
	}
	var gone []*tensor
	m.gone = &gone
	m.drop(result)
	m.gone = nil
	var out models.Output
	if loss != nil {
		out.Loss = torch.ValueOf(loss.x)
	}
	for _, y := range gone {
		out.Rest = append(out.Rest, torch.ValueOf(y.x))
	}
	return out
}

// lossOf is the user's loss, or what the prober's user.py makes of an output: its loss, or
// the mean of what it holds.
func (x *made) lossOf(output value) *tensor {
	m := x.m
	var v value
	switch {
	case x.loss != nil:
		v = m.call(x.loss, hold(output), hold(x.kept))
	default:
		v = m.lossIn(output)
	}
	loss, ok := v.(*tensor)
	if !ok {
		panic(&Error{What: fmt.Sprintf("the loss is a %s; it must be a tensor", typeName(v))})
	}
	return loss
}

func (m *Machine) lossIn(output value) value {
	find := func(name string) value {
		switch s := output.(type) {
		case *dict:
			v, _ := s.get(name)
			return hold(v)
		case *instance:
			if s.items != nil {
				if v, ok := s.items.get(name); ok {
					return hold(v)
				}
			}
			v, _ := m.optional(s, name)
			return v
		}
		return nil
	}
	if own := find("loss"); own != nil && own != (none{}) {
		return own
	}
	rest := output
	if d, ok := output.(*dict); ok && len(d.values) > 0 {
		rest = d.values[0]
	} else if logits := find("logits"); logits != nil {
		rest = logits
	} else if items, ok := itemsIn(output); ok && len(items) > 0 {
		rest = items[0]
	}
	if _, ok := rest.(*tensor); !ok {
		panic(&Error{What: fmt.Sprintf("the model returned a %s; return a function loss(output, batch) next to it", typeName(rest))})
	}
	float := tensorMethods["float"].call(m, &args{pos: []value{rest}})
	defer m.drop(float)
	return tensorMethods["mean"].call(m, &args{pos: []value{float}})
}
