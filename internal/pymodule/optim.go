package pymodule

import (
	"slices"
	"strings"

	"memorymark/internal/torch"
)

// This file is torch.optim, for programs that make their own optimizer.

// optimClass is a class of torch.optim: what it is called with after params and lr, by place,
// and the argument that decays gradients instead of parameters.
type optimClass struct {
	kind      string
	arguments []string
	decays    bool // weight_decay is added to gradients, which takes memory
}

var optimClasses = map[string]optimClass{
	"AdamW":   {"adamw", []string{"betas", "eps", "weight_decay", "amsgrad"}, false},
	"Adam":    {"adam", []string{"betas", "eps", "weight_decay", "amsgrad"}, true},
	"SGD":     {"sgd", []string{"momentum", "dampening", "weight_decay", "nesterov"}, true},
	"RMSprop": {"rmsprop", []string{"alpha", "eps", "weight_decay", "momentum", "centered"}, true},
}

// optimizer is an object of such a class.
type optimizer struct {
	kind   string
	impl   torch.Impl
	groups [][]*tensor
	decays []bool // of a group: its gradients are copied
}

func optimName(_ *Machine, _, name string) value {
	class, ok := optimClasses[name]
	if !ok {
		return nil
	}
	return &builtin{name, func(m *Machine, a *args) value { return m.optimizer(name, class, a) }}
}

func (m *Machine) optimizer(name string, class optimClass, a *args) value {
	a.only(name, append([]string{"params", "lr", "foreach", "fused", "maximize", "capturable", "differentiable"}, class.arguments...)...)
	option := func(option string) value {
		i := slices.Index(class.arguments, option)
		if i >= 0 {
			i += 2
		}
		return a.or(i, option, false)
	}
	for _, off := range []string{"amsgrad", "centered", "maximize", "capturable", "differentiable"} {
		if m.truth(option(off)) {
			panic(failure("%s of %s is not known", off, name))
		}
	}
	o := &optimizer{kind: class.kind}
	switch {
	case m.truth(option("fused")):
		o.impl = torch.Fused
	case a.get(-1, "foreach") == false:
		o.impl = torch.Loop
	}
	if m.truth(option("momentum")) {
		if class.kind != "sgd" {
			panic(failure("momentum of %s is not known", name))
		}
		o.kind = "sgd-momentum"
	}
	params, decay := m.listOf(a.need(0, "params")), option("weight_decay")
	if len(params) == 0 {
		panic(raise("ValueError", "optimizer got an empty parameter list"))
	}
	add := func(list []value, decay value) {
		var group []*tensor
		for _, v := range list {
			if pair, ok := v.(*tuple); ok { // of named_parameters
				v = pair.items[1]
			}
			p, ok := v.(*tensor)
			if !ok {
				panic(raise("TypeError", "optimizer can only optimize Tensors, but one of the params is %s", typeName(v)))
			}
			group = append(group, p)
		}
		decays := class.decays && m.truth(decay) && o.impl != torch.Fused
		if decays && (o.impl == torch.Loop || class.kind == "rmsprop") {
			panic(failure("weight_decay of this %s is not known", name))
		}
		o.groups, o.decays = append(o.groups, group), append(o.decays, decays)
	}
	if _, grouped := params[0].(*dict); !grouped {
		add(params, decay)
		return o
	}
	for _, v := range params {
		group := m.itemsOf(v)
		own := decay
		for i, k := range group.keys {
			switch key := m.text(k); {
			case key == "weight_decay":
				own = group.values[i]
			case !slices.Contains([]string{"params", "lr", "betas", "eps", "name"}, key):
				panic(failure("%s of a group of parameters is not known", key))
			}
		}
		list, _ := group.get("params")
		if p, ok := list.(*tensor); ok {
			add([]value{p}, own)
		} else {
			add(m.listOf(list), own)
		}
	}
	return o
}

// attribute refuses what a program does with its optimizer before steps run.
func (o *optimizer) attribute(_ *Machine, name string) value {
	panic(failure("%s of an optimizer is not known", strings.TrimPrefix(name, "_")))
}

// on is the optimizer of the parameters.
func (o *optimizer) on(t *torch.Torch) *torch.Optimizer {
	made := t.NewOptimizer(torch.OptimizerNamed(o.kind), o.impl)
	groups := make([][]*torch.Tensor, len(o.groups))
	for i, group := range o.groups {
		for _, p := range group {
			groups[i] = append(groups[i], p.x)
		}
	}
	made.Group(groups, o.decays)
	return made
}
