package workload

import (
	"encoding/json"
	"errors"
	"fmt"

	"memorymark/internal/invalid"
	"memorymark/internal/models"
	"memorymark/internal/torch"
)

// validate adds all errors of the values; the draft distinguishes given keys
// from defaults.
func (w *Workload) validate(wrong *invalid.Error, d Draft) {
	for i := range keys {
		wrong.Add(keys[i].check(w))
	}
	wrong.Add(w.Parallel.check(w))
	wrong.Add(w.settleParallel(d))
	if len(wrong.Problems) == 0 && w.Batch*w.Sequence > maxTokens {
		wrong.Add(invalid.At("batch", fmt.Errorf("batch × sequence is %d × %d tokens; it must be at most 2³¹", w.Batch, w.Sequence)))
	}
	var limit *float64
	if json.Unmarshal(d["limit_gib"], &limit) == nil && limit != nil && (!(*limit > 0) || *limit > maxLimitGiB) {
		wrong.Add(invalid.At("limit_gib", fmt.Errorf("limit_gib is %v; it must be above 0 and at most %d", w.LimitGiB, maxLimitGiB)))
	}
	wrong.Add(w.settleOptimizer(d))
	wrong.Add(w.Adapter.check(w))
	wrong.Add(w.checkQuantize())
	wrong.Add(w.checkChannelsLast())
	wrong.Add(w.checkLightningClips())
	if w.Config != nil && w.Unmodelled == "" {
		wrong.Add(w.explainLengths(models.Check(w.Config, w.Sequence)))
		wrong.Add(w.settleLoss(d))
	}
}

// checkChannelsLast reports channels_last without images, and where GPUs share more
// than gradients, because that is not modelled.
func (w *Workload) checkChannelsLast() error {
	switch {
	case !w.ChannelsLast || w.Config == nil || w.Unmodelled != "":
		return nil
	case !w.TakesImages():
		return invalid.At("channels_last", fmt.Errorf("channels_last is true; a %s takes no images, so it must be false", w.Config.ModelType))
	case w.Parallel != nil && w.Parallel.Kind != DDP:
		return invalid.At("channels_last", fmt.Errorf("channels_last is not modelled with parallel %s; use ddp, or leave parallel out", w.Parallel.Kind))
	default:
		return nil
	}
}

// checkLightningClips reports what Lightning refuses: to clip gradients under autocast
// where the optimizer unscales them itself, as fused ones do
// (lightning/pytorch/plugins/precision/amp.py, clip_gradients).
func (w *Workload) checkLightningClips() error {
	autocast := w.Precision == AMPBF16 || w.Precision == AMPFP16
	if w.Loop.Name != LightningLoop || !w.ClipGradNorm || !autocast || w.OptimizerImpl != Fused {
		return nil
	}
	return invalid.At("optimizer_impl", errors.New("loop lightning does not clip gradients under autocast where the optimizer is fused; set optimizer_impl to foreach, or clip_grad_norm to false"))
}

// settleLoss chooses a loss that the model's head has. A model without a head has
// no loss of its own; unless the user says otherwise, it is the mean of the last
// hidden states. A head for question answering has two logits, so there is no
// mean to take.
func (w *Workload) settleLoss(d Draft) error {
	_, head, err := models.Find(w.Config)
	if err != nil {
		return nil //nolint:nilerr // Check has reported it
	}
	_, given := d["loss"]
	switch {
	case w.Loop.Name == TrainerLoop && w.Phase == Train && (head.Labels == models.NoLabels || w.Loss == MeanLogits):
		// compute_loss (transformers/trainer.py)
		return invalid.At("loop", fmt.Errorf("loop is %q; it trains on the loss that a model returns, and there is none of %s here; use another loop, or a head with labels", TrainerLoop, head.Architecture))
	case head.Labels == models.NoLabels && w.Loss == Labels && given:
		return invalid.At("loss", fmt.Errorf("loss is %q; a %s has none of its own, so it must be %s", Labels, head.Architecture, MeanLogits))
	case head.Labels == models.NoLabels:
		w.Loss = MeanLogits
	case head.Labels == models.Pairs && w.Loss == MeanLogits:
		return invalid.At("loss", fmt.Errorf("loss is %q; a %s compares texts and images, so it must be %s", MeanLogits, head.Architecture, Labels))
	case head.Labels == models.Spans && w.Loss == MeanLogits:
		return invalid.At("loss", fmt.Errorf("loss is %q; a %s has logits for both ends of a span, so it must be %s", MeanLogits, head.Architecture, Labels))
	}
	return nil
}

// TakesImages reports whether a batch is images, not tokens.
func (w *Workload) TakesImages() bool { return models.TakesImages(w.Config) }

// Features are the bins and frames of a sample, where a batch is audio.
func (w *Workload) Features() (bins, frames int64) { return models.Features(w.Config) }

// Run is how the workload's model runs. prepare_model_for_kbit_training has cast
// the unquantized part of a quantized model to float32, and only a cast of the
// whole model brings it back to bfloat16.
func (w *Workload) Run() models.Run {
	r := models.Run{
		// Trainer's training_step calls model.train() (transformers/trainer.py).
		DType: torch.Float32, Train: w.Mode == Training || w.Loop.Name == TrainerLoop, Checkpointing: w.Checkpointing, Eager: w.Attention == Eager,
		Mask: masks[w.AttentionMask], NoCache: w.trainerDropsCache(), Sequence: w.Sequence, Image: w.Image,
		ChannelsLast: w.ChannelsLast, Versions: w.Libraries(),
	}
	prepared := w.Quantize != NotQuantized && w.Adapter != nil && w.Float32Adapters()
	if w.Precision == BF16 && !prepared || w.loadedInBF16() {
		r.DType = torch.BFloat16
	}
	if a := w.Adapter; a != nil {
		r.Adapter = &models.Adapter{
			Rank: a.Rank, Targets: a.Targets, Dropout: a.Dropout, DoRA: a.DoRA, Save: a.ModulesToSave,
			TaskType: string(a.TaskType), Float32: w.Float32Adapters(),
		}
	}
	r.Quantize, r.Compute = quantizations[w.Quantize], computeTypes[w.Precision]
	r.Autocast = w.Precision == AMPBF16 || w.Precision == AMPFP16
	return r
}

// computeTypes are the types in which quantized weights are loaded and compute.
var computeTypes = map[Precision]torch.DType{
	FP32: torch.Float32, TF32: torch.Float32, AMPBF16: torch.BFloat16, AMPFP16: torch.Float16, BF16: torch.BFloat16,
}

var quantizations = map[Quantize]torch.Quantization{
	NotQuantized: torch.NotQuantized, NF4: torch.NF4, NF4Double: torch.NF4Double, Int8: torch.Int8,
}

var masks = map[Mask]models.Mask{NoMask: models.NoMask, Ones: models.OnesMask, Padded: models.PaddedMask}
