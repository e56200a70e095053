package models

import "memorymark/internal/torch"

// responseNorm is ConvNextV2GRN, global response normalization
// (transformers/models/convnextv2/modeling_convnextv2.py).
type responseNorm struct{ weight, bias *torch.Tensor }

func newResponseNorm(t *torch.Torch, width int64, dtype torch.DType) *responseNorm {
	n := &responseNorm{t.Parameter(dtype, 1, 1, 1, width), t.Parameter(dtype, 1, 1, 1, width).Named("bias")}
	n.bias.OddDecay()
	return n
}

func (n *responseNorm) forward(t *torch.Torch, x *torch.Var) torch.Value {
	f := t.Enter().In("grn")
	hidden := f.Let(x)
	global := f.Let(t.NormOver(hidden, 1, 2))
	norm := f.Let(t.Quotient(global, t.Shift(t.MeanLast(global))))
	scaled := t.Mul(torch.Borrow(n.weight), t.Mul(hidden, norm))
	hidden.Set(t.Add(t.Add(scaled, torch.Borrow(n.bias)), hidden))
	return f.Return(hidden)
}
