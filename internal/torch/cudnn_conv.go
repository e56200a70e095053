package torch

import "memorymark/internal/trace"

// convProblem is a convolution as cuDNN's heuristics see it.
type convProblem struct {
	DType            DType
	TF32             bool // float32 may be computed in TF32
	N, C, H, W, K, R int64
	Stride, Padding  int64
}

// convDirection is what of a convolution is computed.
type convDirection int

const (
	convForward convDirection = iota
	convInputGrad
	convWeightGrad
)

func (t *Torch) convProblem(in *Tensor, m *Conv2d) convProblem {
	return convProblem{
		DType: in.DType, TF32: t.TF32 && in.DType == Float32,
		N: in.Shape[0], C: in.Shape[1], H: in.Shape[2], W: in.Shape[3],
		K: m.Weight.Shape[0], R: m.Weight.Shape[2], Stride: m.Stride, Padding: m.Padding,
	}
}

// convWorkspace takes what cuDNN asks for while it computes.
func (t *Torch) convWorkspace(p convProblem, d convDirection) {
	bytes := p.workspace(d)
	t.As(trace.Workspace, func() { t.drop(t.allocate(bytes)) })
}

func (p convProblem) workspace(d convDirection) int64 { return 0 }
