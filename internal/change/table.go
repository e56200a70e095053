package change

import (
	"encoding/json"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Table are all changes but the split of the batch. Of an axis at most one row is
// taken.
var Table = []Axis{
	{{Change: set("expandable segments", "expandable_segments", `true`), Edge: true, alters: func(w *workload.Workload) bool { return !w.ExpandableSegments }}},
	{{Change: set("fused optimizer", "optimizer_impl", `"fused"`), Edge: true, alters: func(w *workload.Workload) bool {
		return updates(w) && w.HasFused() && w.OptimizerImpl != workload.Fused
	}}},
	{{Change: set("checkpointing", "checkpointing", `true`), alters: func(w *workload.Workload) bool { return !w.Checkpointing && w.Phase != workload.Infer }}},
	{
		{Change: set("bf16 autocast", "precision", `"amp-bf16"`), Cost: Rounding, on: (*gpu.Card).HasBF16, alters: isFull, Policy: true},
		{Change: set("fp16 autocast", "precision", fp16), Cost: Rounding, on: hasNoBF16, alters: isFull, Kinds: unsharded},
		{Change: set("bf16 weights", "precision", `"bf16"`), Cost: Weights, on: (*gpu.Card).HasBF16, alters: isNotBF16, Rounds: true},
	},
	{
		{Change: set("8-bit AdamW", "optimizer", `"adamw-8bit"`), Cost: State, alters: isAdam, Kinds: unsharded, Trains: AllWeights},
		{Change: set("SGD", "optimizer", `"sgd"`), Cost: OtherUpdates, alters: func(w *workload.Workload) bool { return updates(w) && w.Optimizer != workload.SGD }, Trains: AllWeights},
	},
	{
		{Change: set("LoRA of rank 16", "adapter", LoRA), Cost: PartOfModel, alters: takesAdapter, Kinds: adapted, Trains: Adapters},
		{
			Change: Change{Label: "QLoRA of rank 16", Patch: workload.Draft{"adapter": json.RawMessage(LoRA), "quantize": json.RawMessage(nf4)}},
			Cost:   PartOfModel, on: (*gpu.Card).HasBF16, alters: takesAdapter, Kinds: unsharded, Trains: Adapters,
		},
		{
			Change: Change{Label: "QLoRA of rank 16 in fp16", Patch: workload.Draft{"adapter": json.RawMessage(LoRA), "quantize": json.RawMessage(nf4), "precision": json.RawMessage(fp16)}},
			Cost:   PartOfModel, on: hasNoBF16, alters: takesAdapter, Kinds: unsharded, Trains: Adapters,
		},
	},
	{
		{Change: set("4-bit weights", "quantize", nf4), Cost: Weights, on: (*gpu.Card).HasBF16, Kinds: unsharded, Trains: Adapters, alters: takes4Bit},
		{
			Change: Change{Label: "4-bit weights in fp16", Patch: workload.Draft{"quantize": json.RawMessage(nf4), "precision": json.RawMessage(fp16)}},
			Cost:   Weights, on: hasNoBF16, Kinds: unsharded, Trains: Adapters, alters: takes4Bit,
		},
	},
}

// LoRA is the adapter that is offered: of all linear layers.
const LoRA = `{"kind":"lora","rank":16,"targets":"all-linear"}`

const (
	nf4  = `"nf4-double"`
	fp16 = `"amp-fp16"`
)

var (
	unsharded = []workload.ParallelKind{"", workload.DDP} // bitsandbytes and GradScaler know no DTensor
	// An adapter's optimizer has next to nothing that ZeRO-1 could share, and tensor
	// parallelism does not split PEFT's layers.
	adapted = []workload.ParallelKind{"", workload.DDP, workload.FSDP, workload.HSDP}
)

func set(label, key, value string) Change {
	return Change{Label: label, Patch: workload.Draft{key: json.RawMessage(value)}}
}

func hasNoBF16(c *gpu.Card) bool { return !c.HasBF16() }

func isFull(w *workload.Workload) bool {
	return w.Precision == workload.FP32 || w.Precision == workload.TF32
}

func isNotBF16(w *workload.Workload) bool { return w.Precision != workload.BF16 }

// updates reports whether an optimizer runs.
func updates(w *workload.Workload) bool {
	return w.Phase == workload.Train && w.Optimizer != workload.NoOptimizer
}

func isAdam(w *workload.Workload) bool {
	return updates(w) && (w.Optimizer == workload.AdamW || w.Optimizer == workload.Adam)
}

func takesAdapter(w *workload.Workload) bool {
	return w.Adapter == nil && w.Phase == workload.Train && !w.TakesImages()
}

func takes4Bit(w *workload.Workload) bool {
	return w.Adapter != nil && !w.Adapter.DoRA && w.Quantize == workload.NotQuantized
}
