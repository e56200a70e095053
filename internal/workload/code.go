package workload

import "memorymark/internal/torch"

// Code is how a Python program makes an optimizer: its class, its arguments, and
// the name that transformers' TrainingArguments has for it. Plans and the page
// write programs of it.
type Code struct {
	Module    string             `json:"module,omitempty"` // "" is torch.optim
	Class     string             `json:"class"`
	Arguments map[string]float64 `json:"arguments"`
	Trainer   string             `json:"trainer,omitempty"`
	// Beside is the one that takes the parameters that this one does not.
	Beside *Code `json:"beside,omitempty"`
	// Split makes matrices, for this one, and others, for the one beside it, of a
	// model's parameters.
	Split string `json:"split,omitempty"`
}

// splitMatrices leaves to Muon what its authors train with it: the matrices of
// hidden layers, not embeddings and heads. Adapters have no others.
const splitMatrices = `trained = [p for p in model.parameters() if p.requires_grad]
head = model.get_output_embeddings()
tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding) or m is head}
matrices = [p for p in trained if p.ndim == 2 and id(p) not in tables]
others = [p for p in trained if p.ndim != 2 or id(p) in tables]
`

// optimizers are those that PyTorch's side knows.
func optimizers() []Value {
	out := make([]Value, len(torch.Optimizers))
	for i, o := range torch.Optimizers {
		out[i] = Value{Name: o.Name, Label: o.Label, Code: Optimizer(o.Name).Code()}
	}
	return out
}

// Code is how a program makes the optimizer, nil for none.
func (o Optimizer) Code() *Code {
	if kind := torch.OptimizerNamed(string(o)); kind.Class != "" {
		return codeOf(kind)
	}
	return nil
}

func codeOf(o torch.OptimizerKind) *Code {
	c := &Code{Module: o.Module, Class: o.Class, Arguments: o.Arguments, Trainer: o.Trainer}
	if o.Beside != "" {
		c.Beside, c.Split = codeOf(torch.OptimizerNamed(o.Beside)), splitMatrices
	}
	return c
}

// Arguments are what a program gives BitsAndBytesConfig, "" for weights that are
// not quantized.
func (q Quantize) Arguments() string {
	switch q {
	case NF4:
		return `load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16`
	case NF4Double:
		return `load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16`
	case Int8:
		return `load_in_8bit=True`
	default:
		return ""
	}
}

func quantizedAs(formats []Value) []Value {
	for i, f := range formats {
		formats[i].Arguments = Quantize(f.Name).Arguments()
	}
	return formats
}
