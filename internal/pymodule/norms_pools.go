package pymodule

import (
	"slices"
	"strconv"

	"memorymark/internal/torch"
)

// This file holds normalizations, pools, and modules that are functions.

// addNorms makes normalizations.
func (m *Machine) addNorms() {
	for _, name := range []string{"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"} {
		m.layer(name, func(m *Machine, x *instance, a *args) value {
			a.only(name, "num_features", "eps", "momentum", "affine", "track_running_stats", "device", "dtype")
			n := integer(a.need(0, "num_features"))
			if a.or(3, "affine", true) != true || a.or(4, "track_running_stats", true) != true {
				panic(failure("this %s is not known", name))
			}
			m.parameter(x, "weight", m.dtype, n)
			m.parameter(x, "bias", m.dtype, n)
			m.bufferOf(x, "running_mean", m.dtype, n)
			m.bufferOf(x, "running_var", m.dtype, n)
			m.bufferOf(x, "num_batches_tracked", torch.Int64)
			x.fields.set(m, "num_features", n)
			x.fields.set(m, "eps", hold(a.or(1, "eps", 1e-5)))
			x.fields.set(m, "momentum", hold(a.or(2, "momentum", 0.1)))
			return none{}
		}, func(m *Machine, x *instance, a *args) value {
			return m.tensor(m.t.BatchNorm(in(a.pos[0]), &torch.BatchNorm2d{
				Weight: x.own("weight"), Bias: x.own("bias"), Mean: x.own("running_mean"), Var: x.own("running_var"), Counts: x.own("num_batches_tracked"),
			}, m.trains(x)))
		})
	}
	m.layer("GroupNorm", func(m *Machine, x *instance, a *args) value {
		a.only("GroupNorm", "num_groups", "num_channels", "eps", "affine", "device", "dtype")
		n := integer(a.need(1, "num_channels"))
		x.fields.set(m, "num_groups", integer(a.need(0, "num_groups")))
		x.fields.set(m, "num_channels", n)
		x.fields.set(m, "eps", hold(a.or(2, "eps", 1e-5)))
		for _, p := range []string{"weight", "bias"} {
			if m.truth(a.or(3, "affine", true)) {
				m.parameter(x, p, m.dtype, n)
			} else {
				x.fields.set(m, p, none{})
			}
		}
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		groups, _ := x.fields.get("num_groups")
		return m.tensor(m.t.GroupNorm(in(a.pos[0]), integer(groups), x.own("weight"), x.own("bias")))
	})
	m.layer("RMSNorm", func(m *Machine, x *instance, a *args) value {
		shape := m.shapeOf([]value{a.need(0, "normalized_shape")})
		x.fields.set(m, "eps", hold(a.or(1, "eps", none{})))
		if m.truth(a.or(2, "elementwise_affine", true)) {
			m.parameter(x, "weight", m.dtype, shape...)
		} else {
			x.fields.set(m, "weight", none{})
		}
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		return m.tensor(m.t.FusedRMSNorm(in(a.pos[0]), x.own("weight")))
	})
}

// poolOf are the windows of a module or a function that pools.
func (m *Machine) poolOf(dims int, kernel, stride, padding, dilation value, ceil bool) *torch.Pool {
	p := &torch.Pool{Kernel: m.several(kernel, dims), Ceil: ceil}
	p.Stride = p.Kernel
	if stride != nil && stride != (none{}) {
		p.Stride = m.several(stride, dims)
	}
	p.Padding, p.Dilation = slices.Repeat([]int64{0}, dims), slices.Repeat([]int64{1}, dims)
	if padding != nil {
		p.Padding = m.several(padding, dims)
	}
	if dilation != nil {
		p.Dilation = m.several(dilation, dims)
	}
	return p
}

// pooled is a function that pools, which modules have too.
func pooled(name string, dims int) func(m *Machine, x torch.X, a *args) value {
	return func(m *Machine, x torch.X, a *args) value {
		if name == "MaxPool" {
			p := m.poolOf(dims, a.need(0, "kernel_size"), a.get(1, "stride"), a.get(2, "padding"), a.get(3, "dilation"), m.truth(a.or(-1, "ceil_mode", false)))
			return m.tensor(lines(m, x, dims, func(x torch.X) torch.Value { return m.t.MaxPool(x, p.Wide()) }))
		}
		p := m.poolOf(dims, a.need(0, "kernel_size"), a.get(1, "stride"), a.get(2, "padding"), nil, m.truth(a.or(3, "ceil_mode", false)))
		return m.tensor(lines(m, x, dims, func(x torch.X) torch.Value { return m.t.AvgPool(x, p.Wide()) }))
	}
}

// lines runs an operator on images, of one row where there is one dimension.
func lines(m *Machine, x torch.X, dims int, f func(x torch.X) torch.Value) torch.Value {
	if dims > 1 {
		return f(x)
	}
	v := m.t.Hold(x)
	n := len(v.Tensor().Shape)
	return m.t.Squeeze(f(m.t.Unsqueeze(v, n-1)), n-1)
}

func (m *Machine) addPools() {
	for _, name := range []string{"MaxPool", "AvgPool"} {
		for dims := 1; dims <= 2; dims++ {
			pool, full := pooled(name, dims), name+strconv.Itoa(dims)+"d"
			m.layer(full, func(m *Machine, x *instance, a *args) value {
				x.fields.set(m, "_given", &keptArgs{args{holdAll(a.pos), slices.Clone(a.names), holdAll(a.named)}})
				for i, field := range []string{"kernel_size", "stride", "padding", "dilation"} {
					v := a.get(i, field)
					if v == nil || v == (none{}) {
						v = map[string]value{"kernel_size": nil, "stride": a.get(0, "kernel_size"), "padding": int64(0), "dilation": int64(1)}[field]
					}
					x.fields.set(m, field, hold(v))
				}
				x.fields.set(m, "ceil_mode", a.or(-1, "ceil_mode", false))
				return none{}
			}, func(m *Machine, x *instance, a *args) value {
				given, _ := x.fields.get("_given")
				return pool(m, in(a.pos[0]), &given.(*keptArgs).args)
			})
		}
	}
	for dims := 1; dims <= 2; dims++ {
		m.layer("AdaptiveAvgPool"+strconv.Itoa(dims)+"d", func(m *Machine, x *instance, a *args) value {
			x.fields.set(m, "output_size", hold(a.need(0, "output_size")))
			return none{}
		}, func(m *Machine, x *instance, a *args) value {
			size, _ := x.fields.get("output_size")
			return m.adaptive(a.pos[0].(*tensor), size, dims)
		})
	}
}

// keptArgs are arguments that a module keeps.
type keptArgs struct{ args args }

// adaptive is adaptive_avg_pool1d or 2d: None is the size that there is.
func (m *Machine) adaptive(x *tensor, size value, dims int) value {
	var sizes []int64
	items, ok := itemsIn(size)
	if !ok {
		items = slices.Repeat([]value{size}, dims)
	}
	for i, v := range items {
		if v == (none{}) {
			v = x.x.Dim(len(x.x.Shape) - dims + i)
		}
		sizes = append(sizes, integer(v))
	}
	if dims == 1 {
		sizes = append([]int64{1}, sizes...)
	}
	return m.tensor(lines(m, in(x), dims, func(x torch.X) torch.Value { return m.t.AdaptiveAvgPool(x, sizes...) }))
}

// addFunctionModules makes modules that keep arguments for a function.
func (m *Machine) addFunctionModules() {
	calls := map[string]string{ // of torch.nn.functional
		"Tanh": "tanh", "ReLU": "relu", "SiLU": "silu", "GELU": "gelu", "Sigmoid": "sigmoid", "ReLU6": "relu6", "LeakyReLU": "leaky_relu", "ELU": "elu", "Mish": "mish",
		"Hardswish": "hardswish", "Hardsigmoid": "hardsigmoid", "Hardtanh": "hardtanh", "LogSigmoid": "logsigmoid", "Softplus": "softplus", "GLU": "glu", "CELU": "celu", "SELU": "selu",
		"LogSoftmax": "log_softmax", "MSELoss": "mse_loss", "BCELoss": "binary_cross_entropy", "HuberLoss": "huber_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
		"CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss", "Softmax": "softmax", "PixelShuffle": "pixel_shuffle", "PixelUnshuffle": "pixel_unshuffle", "Upsample": "interpolate",
		"Unfold": "unfold", "Softsign": "softsign", "CosineSimilarity": "cosine_similarity", "Dropout1d": "dropout1d", "Dropout2d": "dropout2d", "Dropout3d": "dropout3d",
	}
	for name, function := range calls {
		m.layer(name, func(m *Machine, x *instance, a *args) value {
			kept := &keptArgs{args{holdAll(a.pos), slices.Clone(a.names), holdAll(a.named)}}
			x.fields.set(m, "_given", kept)
			for i, n := range a.names {
				x.fields.set(m, n, hold(a.named[i]))
			}
			return none{}
		}, func(m *Machine, x *instance, a *args) value {
			v, _ := x.fields.get("_given")
			given := v.(*keptArgs).args
			all := &args{slices.Clone(a.pos), slices.Clone(a.names), slices.Clone(a.named)}
			all.pos, all.names, all.named = append(all.pos, given.pos...), append(all.names, given.names...), append(all.named, given.named...)
			f := nnFunctions[function]
			if f == nil {
				panic(failure("nn.functional.%s is not known", function))
			}
			return f.call(m, all)
		})
	}
}

// activations are the functions that may change their input: the place of that argument, and
// the node of autograd that is known then.
var activations = map[string]struct {
	at   int
	node string
}{
	"relu": {1, "Relu"}, "relu6": {1, "Hardtanh"}, "leaky_relu": {2, "LeakyRelu"}, "hardswish": {1, "Hardswish"}, "hardsigmoid": {1, "Hardsigmoid"}, "silu": {1, "Silu"},
	"elu": {2, "Elu"}, "mish": {1, ""}, "selu": {1, ""}, "celu": {2, ""}, "hardtanh": {3, ""},
}

// addInPlace has activations change their input where they are asked to.
func addInPlace() {
	for name, activation := range activations {
		f := nnFunctions[name]
		nnFunctions[name] = &builtin{name, func(m *Machine, a *args) value {
			if !m.truth(a.or(activation.at, "inplace", false)) {
				return f.call(m, a)
			}
			x := a.need(0, "input").(*tensor)
			switch activation.node {
			case "":
				panic(failure("%s in place is not known", name))
			case "Relu":
				m.t.ReLUInPlace(m.t.InPlace(x.x))
			default:
				m.t.UnaryInPlace(activation.node, m.t.InPlace(x.x))
			}
			x.fact = fact{}
			return hold(x)
		}}
	}
}
