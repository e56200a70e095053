package models

import (
	"fmt"

	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

// experts are the weights of all experts of a layer, in tensors of three
// dimensions: MixtralExperts, Qwen3MoeExperts, DeepseekV2Experts.
type experts struct {
	gateUp, down *torch.Stack
	activation   string
}

// newExperts makes them in the order of the constructor.
func newExperts(t *torch.Torch, count, width, inner int64, c *llamaConfig, r Run) *experts {
	e := &experts{
		gateUp:     t.NewStack("mlp.experts.gate_up_proj", r.DType, count, 2*inner, width).Fused(2),
		down:       t.NewStack("mlp.experts.down_proj", r.DType, count, width, inner),
		activation: c.HiddenAct,
	}
	e.gateUp.Before(e.down)
	return e
}

// newGate makes the weight of a router, no nn.Linear.
func newGate(t *torch.Torch, count, width int64, r Run) *torch.Stack {
	return t.NewStack("mlp.gate.weight", r.DType, count, width)
}

// forward calls the experts, with adapters around their weights if there are any.
func (e *experts) forward(t *torch.Torch, hidden, index, weights *torch.Var) torch.Value {
	f := t.Enter()
	down := t.Activate(e.down) // the outer wrapper
	gateUp := t.Activate(e.gateUp)
	result := f.Let(e.grouped(t, gateUp, down, hidden, index, weights))
	gateUp.Leave()
	down.Leave()
	return f.Return(result)
}

// grouped is grouped_mm_experts_forward (transformers/integrations/moe.py): tokens, each as
// often as it has experts, are sorted by expert, and go through the matrices in
// groups. Nothing here is larger or smaller for how many tokens an expert gets.
func (e *experts) grouped(t *torch.Torch, gateUp, down *torch.ActiveStack, hidden, index, weights *torch.Var) torch.Value {
	f := t.Enter().In("experts")
	tokens, width, chosen := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1), index.Tensor().Dim(1)
	samples, ids := f.Let(t.Reshape(weights, -1)), f.Let(t.Reshape(index, -1))
	inOrder, places := t.Sort(ids)
	sorted, order := f.Let(inOrder), f.Let(places)
	selected := f.Let(t.Rows(hidden, t.Integers(order)))
	weight := f.Let(t.Rows(samples, order))
	f.Let(t.To(sorted, torch.Int32))
	counts := f.Let(t.Full(torch.Int32, e.down.Weight.Dim(0))) // histc
	offsets := f.Let(t.Cumsum(counts))
	// Tokens that belong to experts of other ranks: there are none.
	elsewhere := f.Let(t.Unsqueeze(t.Compare(sorted), 1))
	matrices := f.Let(gateUp.Weight())
	t.MaskedFillInPlace(selected, elsewhere)
	out := f.Let(groupedLinear(t, selected, matrices, offsets))
	out.Set(t.MaskedFill(out, elsewhere))
	out.Set(e.gated(t, out))
	matrices.Set(down.Weight())
	out.Set(groupedLinear(t, out, matrices, offsets))
	out.Set(t.MaskedFill(out, elsewhere))
	weighted := f.Let(t.Mul(out, t.Unsqueeze(weight, 1)))
	back := f.Let(t.FullLike(order))
	t.Drop(t.Arange(tokens * chosen)) // back[order] = arange
	weighted.Set(t.Rows(weighted, back))
	final := f.Let(t.Sum(t.View(weighted, tokens, chosen, width), 1))
	return f.Return(t.To(final, hidden.Tensor().DType))
}

// groupedLinear is _grouped_linear, which casts its input to the type of the
// weights.
func groupedLinear(t *torch.Torch, x, weight, offsets *torch.Var) torch.Value {
	return t.GroupedMM(t.To(x, weight.Tensor().DType), t.Transpose(weight, -2, -1), offsets)
}

// gated is _apply_gate.
func (e *experts) gated(t *torch.Torch, x *torch.Var) torch.Value {
	f := t.Enter()
	halves := t.Split(x, e.down.Weight.Dim(2), -1)
	gate, up := f.Let(halves[0]), f.Let(halves[1])
	return f.Return(t.Mul(activations[e.activation](t, gate), up))
}

// routed is what a router returns: logits, weights and numbers of the experts of
// each token.
type routed struct{ logits, weights, index torch.Value }

// checkExperts checks what grouped products need: rows of whole 16 bytes, also in
// half types (check_valid_strides_and_return_transposed,
// aten/src/ATen/native/GroupedMMUtils.h), and enough experts to choose from.
func checkExperts(width, inner int64, innerKey string, experts, chosen int64, chosenKey string) error {
	const multiple = 8
	switch {
	case width%multiple != 0:
		return invalid.At("hidden_size", fmt.Errorf("config: hidden_size is %d; experts need a multiple of %d", width, multiple))
	case inner%multiple != 0:
		return invalid.At(innerKey, fmt.Errorf("config: %s is %d; experts need a multiple of %d", innerKey, inner, multiple))
	case chosen > experts:
		return invalid.At(chosenKey, fmt.Errorf("config: %s is %d; it must be at most the number of experts, %d", chosenKey, chosen, experts))
	}
	return nil
}
