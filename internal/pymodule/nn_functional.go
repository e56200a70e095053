package pymodule

import (
	"memorymark/internal/torch"
)

// This file holds the functions of torch.nn.functional.

func functionsOfNN() map[string]*builtin {
	out := make(map[string]*builtin)
	add := func(name string, call func(m *Machine, a *args) value) { out[name] = &builtin{name, call} }
	add("gelu", func(m *Machine, a *args) value { return m.tensor(m.t.GELU(in(a.pos[0]))) })
	add("silu", func(m *Machine, a *args) value { return m.tensor(m.t.SiLU(in(a.pos[0]))) })
	add("relu", func(m *Machine, a *args) value { return m.tensor(m.t.ReLU(in(a.pos[0]))) })
	add("softplus", func(m *Machine, a *args) value {
		return m.tensor(m.t.Softplus(in(a.pos[0])))
	})
	for _, name := range []string{"softmax", "log_softmax"} {
		add(name, func(m *Machine, a *args) value { return m.softmax(name, a) })
	}
	add("dropout", func(m *Machine, a *args) value {
		a.only("dropout", "p", "training", "input", "inplace")
		x, p, on := a.need(0, "input").(*tensor), number(a.or(1, "p", 0.5)), m.truth(a.or(2, "training", true))
		if m.truth(a.or(3, "inplace", false)) {
			return m.dropoutInPlace(x, p, on)
		}
		return m.tensor(m.t.Dropout(in(x), p, on))
	})
	for _, name := range []string{"dropout1d", "dropout2d", "dropout3d"} {
		add(name, func(m *Machine, a *args) value {
			a.only(name, "p", "training", "input", "inplace")
			x, p := a.need(0, "input"), number(a.or(1, "p", 0.5))
			if !m.truth(a.or(2, "training", true)) || p == 0 {
				return hold(x)
			}
			if m.truth(a.or(3, "inplace", false)) {
				panic(failure("%s in place is not known", name))
			}
			return m.tensor(m.t.FeatureDropout(in(x)))
		})
	}
	add("layer_norm", func(m *Machine, a *args) value {
		a.only("layer_norm", "normalized_shape", "weight", "bias", "eps", "input")
		if len(m.shapeOf([]value{a.need(1, "normalized_shape")})) != 1 {
			panic(failure("this layer_norm is not known"))
		}
		n := &torch.LayerNorm{}
		if w, ok := a.or(2, "weight", nil).(*tensor); ok {
			n.Weight = w.x
		}
		if b, ok := a.or(3, "bias", nil).(*tensor); ok {
			n.Bias = b.x
		}
		return m.tensor(m.t.LayerNorm(in(a.need(0, "input")), n))
	})
	addLosses(add)
	addImages(add)
	add("grouped_mm", func(m *Machine, a *args) value {
		return m.tensor(m.t.GroupedMM(in(a.pos[0]), in(a.pos[1]), in(a.need(-1, "offs"))))
	})
	add("linear", func(m *Machine, a *args) value {
		m.needSameType(a.pos[0], a.need(1, "weight").(*tensor).x)
		if b := a.or(2, "bias", nil); b != nil {
			return m.tensor(m.t.BiasedLinearOf(in(a.pos[0]), in(a.need(1, "weight")), in(b)))
		}
		return m.tensor(m.t.LinearOf(in(a.pos[0]), in(a.need(1, "weight"))))
	})
	add("scaled_dot_product_attention", func(m *Machine, a *args) value {
		a.only("scaled_dot_product_attention", "attn_mask", "dropout_p", "scale", "is_causal", "enable_gqa", "query", "key", "value")
		return m.tensor(m.t.Attention(in(a.need(0, "query")), in(a.need(1, "key")), in(a.need(2, "value")), maybe(a.get(3, "attn_mask")),
			number(a.or(4, "dropout_p", 0.0)), m.truth(a.or(5, "is_causal", false)), m.truth(a.or(-1, "enable_gqa", false))))
	})
	return out
}

// dropoutInPlace changes its input, if anything is dropped.
func (m *Machine) dropoutInPlace(x *tensor, p float64, training bool) value {
	if p > 0 && training {
		m.t.DropoutInPlace(m.t.InPlace(x.x))
		x.fact = fact{}
	}
	return hold(x)
}
