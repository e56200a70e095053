package models

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"memorymark/internal/torch"
)

// activation is one of transformers' activation functions. It is a module, so
// a temporary it is called with lives until it has returned.
type activation func(t *torch.Torch, x torch.X) torch.Value

// activations are those of ACT2FN (transformers/activations.py) that are
// modelled.
var activations = map[string]activation{
	"gelu":              (*torch.Torch).GELU,
	"gelu_pytorch_tanh": (*torch.Torch).GELU,
	"gelu_new":          geluNew,
	"quick_gelu":        quickGELU,
	"relu":              (*torch.Torch).ReLU,
	"silu":              (*torch.Torch).SiLU,
	"swish":             (*torch.Torch).SiLU,
	"tanh":              (*torch.Torch).Tanh,
}

// activationOf returns the function of a name in a configuration.
func activationOf(name string) (activation, error) {
	if a, ok := activations[name]; ok {
		return a, nil
	}
	return nil, fmt.Errorf("config: activation %q is not modelled; these are: %s", name,
		strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
}

// geluNew is NewGELUActivation: 0.5 * input * (1.0 + tanh(sqrt(2 / pi) *
// (input + 0.044715 * pow(input, 3.0)))), operator by operator.
func geluNew(t *torch.Torch, x torch.X) torch.Value {
	f := t.Enter()
	input := f.Let(x)
	half := t.Scale(input)
	inner := t.Scale(t.Add(input, t.Scale(t.Pow(input))))
	return f.Return(t.Mul(half, t.Shift(t.Tanh(inner))))
}

// quickGELU is QuickGELUActivation: input * torch.sigmoid(1.702 * input).
func quickGELU(t *torch.Torch, x torch.X) torch.Value {
	f := t.Enter()
	input := f.Let(x)
	return f.Return(t.Mul(input, t.Sigmoid(t.Scale(input))))
}
