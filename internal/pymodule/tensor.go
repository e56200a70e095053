package pymodule

import (
	"memorymark/internal/torch"
	"memorymark/internal/workbudget"
)

// torchState is what a process knows of its PyTorch.
type torchState struct {
	model       *instance   // nil until it is built
	dtype       torch.DType // the default one
	building    bool        // the model, on the card
	training    bool
	path        string             // of the module that runs
	recordings  []recording        // of outputs of modules that run
	gone        *[]*tensor         // where tensors go instead of being freed, nil for nowhere
	hosts       bool               // there are tensors on the CPU
	budget      *workbudget.Budget // nil for no limit
	unspent     int64              // that the budget was not charged yet
	modulesMade int                // modules
	mapped      int                // functions that are mapped over tensors (torch.vmap)
}

// tensor is a torch.Tensor.
type tensor struct {
	refs
	x         *torch.Tensor
	named     torch.X // the same, once an operator took it
	fact      fact
	parameter bool
	buffer    bool
	passing   bool      // a buffer that is not saved (persistent=False)
	borrowed  bool      // something of Go keeps it
	part      *part     // of the last dimension of another that it is, nil for anything else
	host      bool      // is on the CPU, where it takes no memory that counts
	values    []float64 // of a vector on the CPU, where they are known
}

// part is a range of the last dimension of a tensor.
type part struct {
	of       *torch.Tensor
	from, to int64
}

func (x *tensor) free(m *Machine) {
	if x.borrowed {
		return
	}
	if m.gone != nil {
		*m.gone = append(*m.gone, x)
		return
	}
	m.t.Release(x.x)
}

// tensor makes an object of what an operator returns.
func (m *Machine) tensor(v torch.Value) *tensor { return &tensor{refs: refs{1}, x: v.Tensor()} }

// known is tensor of which something is known.
func (m *Machine) known(v torch.Value, f fact) *tensor {
	return &tensor{refs: refs{1}, x: v.Tensor(), fact: f}
}

// made is a new tensor on the device that is asked for: without one it is the card
// while the model is built, and the CPU after.
func (m *Machine) made(a *args, d torch.DType, f fact, shape ...int64) *tensor {
	on := a.get(-1, "device")
	if host, ok := on.(device); ok && host.cpu || on == "cpu" || !m.building && (on == nil || on == none{}) {
		m.hosts = true
		return &tensor{refs: refs{1}, x: m.t.OnHost(d, shape...), fact: f, host: true}
	}
	return m.known(m.t.Full(d, shape...), f)
}

// in is a tensor as an operator takes it.
func in(v value) torch.X {
	if x, ok := v.(*tensor); ok {
		if x.named == nil {
			x.named = torch.Borrow(x.x)
		}
		return x.named
	}
	panic(failure("a tensor is needed, not a %s", typeName(v)))
}

// maybe is in of what may be None.
func maybe(v value) torch.X {
	if v == nil || v == (none{}) {
		return nil
	}
	return in(v)
}

// fact is what is known of the numbers in a tensor, so that Python can decide by
// them: masks and positions.
type fact struct {
	kind  factKind
	value float64 // of all elements, of the first one, or that all are below
	step  float64
}

type factKind int

const (
	nothing  factKind = iota
	constant          // all elements are one number
	steps             // they go up along the last dimension
	mixed             // zeros and ones, both
	below             // all are below a number
	chance            // from 0 to 1, drawn at random
	tokens            // ids of tokens, all below a number unless that is 0
	ends              // true for one token of each text: where it ends
)

func always(v float64) fact { return fact{constant, v, 0} }

// item is the number that all elements are.
func (x *tensor) item() float64 {
	if x.fact.kind != constant {
		panic(failure("what is in a tensor decides here, which is not known"))
	}
	return x.fact.value
}

func (x *tensor) truth() bool { return x.item() != 0 }

// decided is what a comparison with a number comes to.
func (f fact) compared(op string, with value) fact {
	if !isNumber(with) {
		return fact{}
	}
	n := number(with)
	switch {
	case f.kind == below && n >= f.value && (op == "Eq" || op == "NotEq"):
		return always(number(op == "NotEq"))
	case f.kind == mixed && (n == 0 || n == 1) && (op == "Eq" || op == "NotEq"):
		return f
	case f.kind == tokens && op == "Eq" && (n < 0 || f.value > 0 && n >= f.value):
		return always(0)
	case f.kind == tokens && op == "NotEq": // a batch without a mask has no padding
		return always(1)
	case f.kind == tokens && op == "GtE" && n <= 0:
		return always(1)
	case f.kind == tokens && op == "Eq":
		return fact{kind: ends}
	case f.kind == below && (op == "LtE" && n >= f.value || op == "Gt" && n >= f.value):
		return always(number(op == "LtE"))
	case f.kind == chance && op == "Lt" && (n <= 0 || n >= 1):
		return always(number(n >= 1))
	case f.kind == chance && (op == "Lt" || op == "LtE") && n <= 0.5: // a layer is dropped now and then: the most memory is what is needed
		return always(0)
	case f.kind != constant:
		return fact{}
	case op == "Eq":
		return always(number(f.value == n))
	case op == "NotEq":
		return always(number(f.value != n))
	}
	order := 0
	switch {
	case f.value < n:
		order = -1
	case f.value > n:
		order = 1
	}
	return always(number(ordered(op, order)))
}

// dtype is a torch.dtype.
type dtype torch.DType

var dtypes = map[string]torch.DType{
	"float32": torch.Float32, "float": torch.Float32, "float16": torch.Float16, "half": torch.Float16, "bfloat16": torch.BFloat16,
	"int64": torch.Int64, "long": torch.Int64, "int32": torch.Int32, "int": torch.Int32, "bool": torch.Bool, "uint8": torch.Uint8,
	"complex64": torch.Complex64,
}

func (d dtype) name() string {
	for _, name := range []string{"float32", "float16", "bfloat16", "int64", "int32", "bool", "uint8", "complex64"} {
		if dtypes[name] == torch.DType(d) {
			return name
		}
	}
	return "dtype"
}

func (d dtype) attribute(_ *Machine, name string) value {
	switch name {
	case "is_floating_point":
		return torch.DType(d).IsFloat()
	case "itemsize":
		return torch.DType(d).Size()
	}
	return nil
}

// dtypeOf is a type that an argument names, or another if there is none.
func dtypeOf(v value, otherwise torch.DType) torch.DType {
	switch v := v.(type) {
	case nil, none:
		return otherwise
	case dtype:
		return torch.DType(v)
	case *class:
		switch v.name {
		case "float":
			return torch.Float32
		case "int":
			return torch.Int64
		case "bool":
			return torch.Bool
		}
	}
	panic(failure("a %s is no dtype that is known", typeName(v)))
}

// device is a torch.device.
type device struct{ cpu bool }

func (d device) attribute(_ *Machine, name string) value {
	switch name {
	case "type":
		if d.cpu {
			return "cpu"
		}
		return "cuda"
	case "index":
		return int64(0)
	}
	return nil
}

// shapeTuple is x.shape.
func shapeTuple(x *torch.Tensor) *tuple {
	out := newTuple(make([]value, len(x.Shape))...)
	for i, s := range x.Shape {
		out.items[i] = s
	}
	return out
}

// shapeOf are sizes, given one by one or as a sequence.
func (m *Machine) shapeOf(sizes []value) []int64 {
	if len(sizes) == 1 {
		switch x := sizes[0].(type) {
		case *tuple:
			sizes = x.items
		case *list:
			sizes = x.items
		}
	}
	out := make([]int64, len(sizes))
	for i, v := range sizes {
		out[i] = integer(v)
	}
	return out
}

// needsGrad reports whether an operator on tensors is recorded.
func (m *Machine) needsGrad(operands ...*tensor) bool {
	for _, x := range operands {
		if x.x.RequiresGrad() {
			return m.t.GradEnabled()
		}
	}
	return false
}

// plain is arithmetic whose gradient is not known, so that there must be none.
func (m *Machine) plain(dtype torch.DType, operands ...*tensor) *tensor {
	if m.needsGrad(operands...) {
		panic(failure("the gradient of this operator is not known"))
	}
	list := make([]torch.X, len(operands))
	for i, x := range operands {
		list[i] = in(x)
	}
	return m.tensor(m.t.FloatsOf(dtype, list...))
}

// plainFloat is plain of a function whose result is a float. Which of them autocast
// computes in float32 is not known here.
func (m *Machine) plainFloat(x *tensor) *tensor {
	if m.t.Casting() && x.x.DType.IsHalf() {
		panic(failure("the type of this result under autocast is not known"))
	}
	if x.x.DType.IsFloat() {
		return m.plain(x.x.DType, x)
	}
	return m.plain(m.dtype, x)
}
