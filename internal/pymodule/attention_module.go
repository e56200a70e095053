package pymodule

// addAttentionModule makes nn.MultiheadAttention: parameters alone, as its forward is not
// known.
func (m *Machine) addAttentionModule() {
	m.layer("MultiheadAttention", func(m *Machine, x *instance, a *args) value {
		a.only("MultiheadAttention", "embed_dim", "num_heads", "dropout", "bias", "batch_first", "kdim", "vdim", "device", "dtype")
		n := integer(a.need(0, "embed_dim"))
		if a.or(-1, "kdim", nil) != nil || a.or(-1, "vdim", nil) != nil {
			panic(failure("this MultiheadAttention is not known"))
		}
		m.parameter(x, "in_proj_weight", m.dtype, 3*n, n)
		bias := m.truth(a.or(3, "bias", true))
		if bias {
			m.parameter(x, "in_proj_bias", m.dtype, 3*n)
		}
		out := m.callOwned(m.types["Linear"], args{[]value{n, n}, []string{"bias"}, []value{bias}})
		setModuleAttribute(m, x, "out_proj", out)
		return none{}
	}, func(*Machine, *instance, *args) value { panic(failure("nn.MultiheadAttention is not known")) })
}
