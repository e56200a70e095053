package workload

import (
	"fmt"

	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

// settleOptimizer chooses an implementation that the optimizer has.
func (w *Workload) settleOptimizer(d Draft) error {
	kind := torch.OptimizerNamed(string(w.Optimizer))
	_, given := d["optimizer_impl"]
	if !given && kind.OneByOne {
		w.OptimizerImpl = Loop
	}
	if given && w.OptimizerImpl == Fused && w.Optimizer != NoOptimizer && !w.HasFused() {
		return invalid.At("optimizer_impl", fmt.Errorf("optimizer_impl is %q; %s has no fused kernel, so it must be %s or %s", Fused, w.Optimizer, Foreach, Loop))
	}
	return w.CheckOptimizer()
}

// CheckOptimizer reports where an optimizer does not exist or is not modelled.
func (w *Workload) CheckOptimizer() error {
	kind := torch.OptimizerNamed(string(w.Optimizer))
	if since := kind.Since; w.Libraries().Torch.Before(since.Major, since.Minor) {
		return invalid.At("optimizer", fmt.Errorf("optimizer is %q; torch.optim.%s came with PyTorch %v, and versions name %v", w.Optimizer, kind.Class, since, w.Libraries().Torch))
	}
	if kind.Companion != "" {
		return w.checkTwoOptimizers(kind)
	}
	return nil
}

// checkTwoOptimizers reports where two optimizers do not work together or are
// not modelled: the libraries' loops step one, and fully_shard turns parameters
// into DTensors, which Muon would gather.
func (w *Workload) checkTwoOptimizers(kind torch.OptimizerKind) error {
	switch {
	case w.Loop.IsLibrarys():
		return invalid.At("optimizer", fmt.Errorf("optimizer is %q, which is two: %s for matrices and %s for the rest; loop %q steps one, so loop must be plain",
			w.Optimizer, kind.Class, torch.OptimizerNamed(kind.Companion).Class, w.Loop.Name))
	case w.Parallel != nil && w.Parallel.Kind != DDP:
		return invalid.At("optimizer", fmt.Errorf("optimizer is %q, which is not modelled with parallel %s; use ddp, or another optimizer", w.Optimizer, w.Parallel.Kind))
	default:
		return nil
	}
}

// HasFused reports whether there is a fused kernel of the optimizer.
func (w *Workload) HasFused() bool { return torch.OptimizerNamed(string(w.Optimizer)).HasFused() }

// heldOptimizers are those with recordings of other versions. The Adafactor of
// Hugging Face's Trainer is a different one.
func (w *Workload) heldOptimizers() []Optimizer {
	held := []Optimizer{AdamW, Adam, SGD, SGDMomentum, NoOptimizer}
	if w.Libraries().Torch.Before(2, 11) && !w.Loop.IsLibrarys() {
		held = append(held, "rmsprop", "adafactor")
	}
	return held
}
