package models

import (
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

// checkRouterLogits refuses output_router_logits of a head that has no use for them,
// whose output keeps them all the same.
func checkRouterLogits(asked bool, architecture string) error {
	if asked && architecture != "" && !strings.HasSuffix(architecture, causalHead.suffix) {
		return invalid.At("output_router_logits", fmt.Errorf("config: output_router_logits of %s is not modelled; remove it, or set it to false", architecture))
	}
	return nil
}

// balancer is the loss of a model with output_router_logits, for experts that are
// chosen alike (load_balancing_loss_func,
// transformers/models/mixtral/modeling_mixtral.py).
type balancer struct {
	experts, chosen int64
	logits          []torch.Value // of the routers of this forward pass
}

// newBalancer returns the loss, nil where it is not asked for.
func newBalancer(asked bool, experts, chosen int64) *balancer {
	if !asked {
		return nil
	}
	return &balancer{experts: experts, chosen: chosen}
}

// collect keeps what a router returned, as the hook of capture_outputs does
// (transformers/utils/output_capturing.py), which is not active when a block runs
// again under checkpointing.
func (b *balancer) collect(t *torch.Torch, logits *torch.Var) {
	if b != nil && !t.RunsAgain() {
		b.logits = append(b.logits, t.Hold(logits))
	}
}

// taken is what was collected, in the order in which a tuple drops it.
func (b *balancer) taken() []torch.Value {
	if b == nil {
		return nil
	}
	logits := b.logits
	b.logits = nil
	slices.Reverse(logits)
	return logits
}

// loss is load_balancing_loss_func.
func (b *balancer) loss(t *torch.Torch, batch *Batch) torch.Value {
	f := t.Enter()
	counts, sums := f.Let(t.Full(torch.Float32, b.experts)), f.Let(t.Full(torch.Float32, b.experts))
	rows, mask := f.Let(torch.Value{}), f.Let(torch.Value{})
	if batch.Mask != nil {
		mask.Set(t.To(t.Reshape(torch.Borrow(batch.Mask), -1), torch.Float32))
	}
	routing, values, selected := f.Let(torch.Value{}), f.Let(torch.Value{}), f.Let(torch.Value{})
	for _, logits := range b.logits {
		routing.Set(t.Softmax(logits.Borrow(), torch.NoDType))
		top, places := t.TopK(routing, b.chosen)
		values.Set(top)
		selected.Set(places)
		if batch.Mask == nil {
			counts.Set(t.Floats(counts, t.To(t.Bincount(t.Reshape(selected, -1), b.experts), torch.Float32)))
			sums.Set(t.Add(sums, t.Sum(t.To(routing, torch.Float32), 0)))
			continue
		}
		weighted := t.Full(torch.Float32, b.experts)
		t.Drop(t.Full(torch.Float32, selected.Tensor().Numel())) // flat_mask.repeat_interleave(top_k)
		counts.Set(t.Floats(counts, weighted))
		sums.Set(t.Add(sums, t.Sum(t.Mul(t.To(routing, torch.Float32), t.Unsqueeze(mask, 1)), 0)))
		rows.Set(t.Floats(t.Sum(mask, 0)))
	}
	share := func(x *torch.Var) torch.Value {
		if batch.Mask == nil { // the rows are a number of Python's
			return t.Scale(x)
		}
		return t.Div(x, rows)
	}
	tokens, probabilities := f.Let(share(counts)), f.Let(share(sums))
	overall := f.Let(t.SumAll(t.Mul(tokens, t.Unsqueeze(probabilities, 0))))
	return f.Return(t.Scale(overall))
}
