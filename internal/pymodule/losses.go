package pymodule

import (
	"slices"

	"memorymark/internal/torch"
)

// This file holds functions of torch.nn.functional: losses, and what images need.

// softmax is softmax or log_softmax. Over another dimension than the last it is computed
// alike (aten/src/ATen/native/cuda/SoftMax.cu).
func (m *Machine) softmax(name string, a *args) value {
	a.only(name, "dim", "dtype", "input", "_stacklevel")
	d := dtypeOf(a.get(-1, "dtype"), torch.NoDType)
	if name == "log_softmax" {
		return m.tensor(m.t.LogSoftmax(in(a.need(0, "input")), d))
	}
	return m.tensor(m.t.Softmax(in(a.need(0, "input")), d))
}

func addLosses(add adder) {
	add("cross_entropy", func(m *Machine, a *args) value {
		a.only("cross_entropy", "ignore_index", "reduction", "input", "target", "weight", "label_smoothing")
		if a.or(2, "weight", nil) != nil || number(a.or(7, "label_smoothing", 0.0)) != 0 {
			return m.composed("cross_entropy", a)
		}
		if a.or(6, "reduction", "mean") == "none" {
			panic(failure("cross_entropy of each element is not known"))
		}
		if y := a.need(1, "target").(*tensor); y.x.DType.IsFloat() {
			panic(failure("cross_entropy with probabilities is not known"))
		}
		return m.tensor(m.t.CrossEntropy(in(a.need(0, "input")), in(a.need(1, "target"))))
	})
	add("nll_loss", func(m *Machine, a *args) value {
		a.only("nll_loss", "input", "target", "weight", "ignore_index", "reduction")
		if a.or(2, "weight", nil) != nil || a.or(6, "reduction", "mean") == "none" {
			panic(failure("nll_loss with weights or of each element is not known"))
		}
		return m.tensor(m.t.NLL(in(a.pos[0]), in(a.need(1, "target"))))
	})
	for name, node := range map[string]string{
		"mse_loss": "MseLoss", "l1_loss": "L1Loss", "smooth_l1_loss": "SmoothL1Loss", "binary_cross_entropy_with_logits": "BCEWithLogits", "huber_loss": "HuberLoss",
		"binary_cross_entropy": "BinaryCrossEntropy",
	} {
		add(name, func(m *Machine, a *args) value {
			a.only(name, "reduction", "input", "target", "beta", "delta")
			x, y := a.need(0, "input").(*tensor), a.need(1, "target").(*tensor)
			if len(a.pos) > 2 {
				panic(failure("%s with weights is not known", name))
			}
			if node == "BinaryCrossEntropy" && m.t.Casting() {
				panic(raise("RuntimeError", "binary_cross_entropy is unsafe to autocast"))
			}
			how := a.or(-1, "reduction", "mean")
			return m.tensor(m.t.ElementLoss(node, in(x), in(y), how != "none"))
		})
	}
	add("normalize", func(m *Machine, a *args) value {
		x := a.pos[0].(*tensor)
		dim := int(integer(a.or(2, "dim", int64(1))))
		norm := m.tensor(m.t.NormOver(in(x), dim))
		floor := m.tensor(m.t.Clamp(in(norm), false))
		m.drop(norm)
		wide := m.tensor(m.t.Expand(in(floor), x.x.Shape...))
		m.drop(floor)
		out := m.twoTensors("Div", x, wide)
		m.drop(wide)
		return out
	})
	add("softsign", func(m *Machine, a *args) value {
		x := a.pos[0].(*tensor)
		abs := m.unary1("Abs", x).(*tensor)
		shifted := m.withNumber("Add", abs, int64(1))
		m.drop(abs)
		out := m.twoTensors("Div", x, shifted)
		m.drop(shifted)
		return out
	})
	add("glu", func(m *Machine, a *args) value {
		return m.tensor(m.t.Glu(in(a.pos[0]), int(integer(a.or(1, "dim", int64(-1))))))
	})
	add("one_hot", func(m *Machine, a *args) value {
		x := a.pos[0].(*tensor)
		n := integer(a.or(1, "num_classes", int64(-1)))
		if n < 0 {
			panic(failure("one_hot of a number of classes that is not given is not known"))
		}
		out := m.tensor(m.t.Full(torch.Int64, append(slices.Clone(x.x.Shape), n)...))
		m.t.Drop(m.t.Unsqueeze(in(x), len(x.x.Shape)))
		return out
	})
	add("embedding", func(m *Machine, a *args) value {
		a.only("embedding", "padding_idx", "input", "weight")
		return m.tensor(m.t.Embedding(in(a.need(0, "input")), &torch.Embedding{Weight: a.need(1, "weight").(*tensor).x}))
	})
}

func addImages(add adder) {
	for dims, name := range map[int]string{1: "conv1d", 2: "conv2d", 3: "conv3d"} {
		add(name, func(m *Machine, a *args) value {
			a.only(name, "input", "weight", "bias", "stride", "padding", "dilation", "groups")
			weight := a.need(1, "weight").(*tensor)
			c := &torch.Conv{Groups: integer(a.or(6, "groups", int64(1))), Output: slices.Repeat([]int64{0}, dims)}
			c.Stride, c.Dilation = m.several(a.or(3, "stride", int64(1)), dims), m.several(a.or(5, "dilation", int64(1)), dims)
			c.Padding = m.paddingOf(a.or(4, "padding", int64(0)), weight.x.Shape[2:], c.Dilation)
			return m.tensor(m.t.Convolve(in(a.need(0, "input")), in(weight), maybe(a.or(2, "bias", nil)), c))
		})
	}
	for _, name := range []string{"MaxPool", "AvgPool"} {
		for dims := 1; dims <= 2; dims++ {
			pool := pooled(name, dims)
			function := map[string]string{"MaxPool": "max_pool", "AvgPool": "avg_pool"}[name] + string(rune('0'+dims)) + "d"
			add(function, func(m *Machine, a *args) value { return pool(m, in(a.pos[0]), &args{a.pos[1:], a.names, a.named}) })
		}
	}
	for dims, name := range map[int]string{1: "adaptive_avg_pool1d", 2: "adaptive_avg_pool2d"} {
		add(name, func(m *Machine, a *args) value { return m.adaptive(a.pos[0].(*tensor), a.need(1, "output_size"), dims) })
	}
	add("group_norm", func(m *Machine, a *args) value {
		var w, b *torch.Tensor
		if x, ok := a.or(2, "weight", nil).(*tensor); ok {
			w = x.x
		}
		if x, ok := a.or(3, "bias", nil).(*tensor); ok {
			b = x.x
		}
		return m.tensor(m.t.GroupNorm(in(a.pos[0]), integer(a.need(1, "num_groups")), w, b))
	})
	add("batch_norm", func(m *Machine, a *args) value {
		own := func(i int, name string) *torch.Tensor {
			if x, ok := a.or(i, name, nil).(*tensor); ok {
				return x.x
			}
			return nil
		}
		n := &torch.BatchNorm2d{Mean: own(1, "running_mean"), Var: own(2, "running_var"), Weight: own(3, "weight"), Bias: own(4, "bias")}
		return m.tensor(m.t.BatchNorm(in(a.pos[0]), n, m.truth(a.or(5, "training", false))))
	})
	add("fold", func(m *Machine, a *args) value {
		size, x := m.several(a.need(1, "output_size"), 2), a.pos[0].(*tensor)
		kernel := m.several(a.need(2, "kernel_size"), 2)
		return m.tensor(m.t.Folded(in(x), x.x.Dim(1)/(kernel[0]*kernel[1]), size[0], size[1]))
	})
	add("rms_norm", func(m *Machine, a *args) value {
		var w *torch.Tensor
		if x, ok := a.or(2, "weight", nil).(*tensor); ok {
			w = x.x
		}
		return m.tensor(m.t.FusedRMSNorm(in(a.pos[0]), w))
	})
	add("pad", func(m *Machine, a *args) value {
		a.only("pad", "pad", "value", "mode", "input")
		widths := m.shapeOf([]value{a.need(1, "pad")})
		x := a.need(0, "input").(*tensor)
		if mode := a.or(2, "mode", "constant"); mode != "constant" {
			return m.tensor(m.t.PadBy(in(x), widths))
		}
		return m.tensor(m.t.PadDims(in(x), widths))
	})
	add("interpolate", func(m *Machine, a *args) value {
		a.only("interpolate", "input", "size", "scale_factor", "mode", "align_corners", "antialias", "recompute_scale_factor")
		x := a.need(0, "input").(*tensor)
		dims := len(x.x.Shape) - 2
		if s := a.or(1, "size", nil); s != nil {
			if size := m.several(s, dims); a.or(3, "mode", "nearest") == "bicubic" && !m.truth(a.or(-1, "antialias", false)) {
				return m.tensor(m.t.UpsampleBicubic(in(x), size[0], size[1]))
			}
			return m.tensor(m.t.Resized(in(x), m.several(s, dims)...))
		}
		var size []int64
		factor := a.need(2, "scale_factor")
		items, ok := itemsIn(factor)
		if !ok {
			items = slices.Repeat([]value{factor}, dims)
		}
		for i, f := range items {
			size = append(size, int64(float64(x.x.Dim(2+i))*number(f)))
		}
		return m.tensor(m.t.Resized(in(x), size...))
	})
	add("unfold", func(m *Machine, a *args) value {
		pair := func(v value) [2]int64 { return [2]int64(m.several(v, 2)) }
		return m.tensor(m.t.Patches(in(a.pos[0]), pair(a.need(1, "kernel_size")), pair(a.or(4, "stride", int64(1))), pair(a.or(3, "padding", int64(0))), pair(a.or(2, "dilation", int64(1)))))
	})
	for name, down := range map[string]bool{"pixel_shuffle": false, "pixel_unshuffle": true} {
		add(name, func(m *Machine, a *args) value {
			if down {
				panic(failure("pixel_unshuffle is not known"))
			}
			x, r := a.pos[0].(*tensor).x, integer(a.pos[1])
			n := len(x.Shape)
			c, h, w := x.Dim(n-3)/(r*r), x.Dim(n-2), x.Dim(n-1)
			v := m.t.View(in(a.pos[0]), slices.Concat(x.Shape[:n-3], []int64{c, r, r, h, w})...)
			dims := make([]int, 0, n+2)
			for i := range n - 3 {
				dims = append(dims, i)
			}
			v = m.t.Permute(v, append(dims, n-3, n, n-2, n+1, n-1)...)
			return m.tensor(m.t.Reshape(v, slices.Concat(x.Shape[:n-3], []int64{c, h * r, w * r})...))
		})
	}
}

// addPadding makes modules that pad.
func (m *Machine) addPadding() {
	for name, dims := range map[string]int{
		"ZeroPad1d": 1, "ZeroPad2d": 2, "ConstantPad1d": 1, "ConstantPad2d": 2, "ReflectionPad1d": 1, "ReflectionPad2d": 2, "ReplicationPad1d": 1, "ReplicationPad2d": 2,
	} {
		m.layer(name, func(m *Machine, x *instance, a *args) value {
			x.fields.set(m, "padding", tupleOf(m.several(a.need(0, "padding"), 2*dims)))
			return none{}
		}, func(m *Machine, x *instance, a *args) value {
			widths, _ := x.fields.get("padding")
			if name[0] == 'R' {
				return m.tensor(m.t.PadBy(in(a.pos[0]), m.shapeOf([]value{widths})))
			}
			return m.tensor(m.t.PadDims(in(a.pos[0]), m.shapeOf([]value{widths})))
		})
	}
}
