package workload

import "memorymark/internal/torch"

// Code is how a Python program makes an optimizer: its class, its arguments, and
// the name that transformers' TrainingArguments has for it.
type Code struct {
	Module    string // "" is torch.optim
	Class     string
	Arguments map[string]float64
	Trainer   string
	// Companion makes the optimizer of the parameters that this one does not
	// take.
	Companion *Code
	// Split is code that splits a model's parameters into matrices, for this one,
	// and others, for its companion.
	Split string
}

// splitMatrices leaves to Muon what its authors train with it: the matrices of
// hidden layers, not embeddings and heads. With adapters there are no others.
const splitMatrices = `trained = [p for p in model.parameters() if p.requires_grad]
head = model.get_output_embeddings()
embeddings = [m for m in model.modules() if isinstance(m, torch.nn.Embedding)]
tables = {id(m.weight) for m in embeddings + ([head] if head else [])}
matrices = [p for p in trained if p.ndim == 2 and id(p) not in tables]
others = [p for p in trained if p.ndim != 2 or id(p) in tables]
`

// optimizers returns the modelled optimizers.
func optimizers() []Value {
	out := make([]Value, len(torch.Optimizers))
	for i, o := range torch.Optimizers {
		out[i] = Value{Name: o.Name, Label: o.Label}
	}
	return out
}

// Code returns how a program makes the optimizer, nil for none.
func (o Optimizer) Code() *Code {
	if kind := torch.OptimizerNamed(string(o)); kind.Class != "" {
		return codeOf(kind)
	}
	return nil
}

func codeOf(o torch.OptimizerKind) *Code {
	c := &Code{Module: o.Module, Class: o.Class, Arguments: o.Arguments, Trainer: o.Trainer}
	if o.Companion != "" {
		c.Companion, c.Split = codeOf(torch.OptimizerNamed(o.Companion)), splitMatrices
	}
	return c
}
