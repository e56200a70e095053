package engine_test

import (
	"maps"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/models"
	"memorymark/internal/predict"
	"memorymark/internal/steptime"
	"memorymark/internal/testmachine"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// emulating returns a runner for emulated cards. The tests share it, and so the
// processes that have imported PyTorch; these end with the tests.
func emulating(t *testing.T) *engine.Runner {
	t.Helper()
	python := testmachine.Python(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("NOT TESTED: it needs a C compiler")
	}
	if emulator == nil {
		emulator = engine.NewRunner(engine.RunnerOptions{Python: python, Device: engine.AutoDevice})
	}
	return emulator
}

var emulator *engine.Runner

// small are small models, by family.
var small = map[string]string{
	"bert":       `"config": {"model_type": "bert", ` + blocks,
	"roberta":    `"config": {"model_type": "roberta", ` + blocks,
	"distilbert": `"config": {"model_type": "distilbert", "dim": 256, "n_layers": 2, "n_heads": 4, "hidden_dim": 512, "vocab_size": 5000}`,
	"gpt2":       `"config": {"model_type": "gpt2", "n_embd": 256, "n_layer": 2, "n_head": 4, "vocab_size": 5000}`,
	"llama":      `"config": {"model_type": "llama", "num_key_value_heads": 2, ` + blocks,
	"mistral":    `"config": {"model_type": "mistral", "num_key_value_heads": 2, ` + blocks,
	"qwen2":      `"config": {"model_type": "qwen2", "num_key_value_heads": 2, ` + blocks,
	"qwen3":      `"config": {"model_type": "qwen3", "num_key_value_heads": 2, ` + blocks,
	"mixtral":    `"config": {"model_type": "mixtral", "num_key_value_heads": 2, "num_local_experts": 4, ` + blocks,
	"qwen3_moe":  `"config": {"model_type": "qwen3_moe", "num_key_value_heads": 2, "head_dim": 64, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, ` + blocks,
	"deepseek_v2": `"config": {"model_type": "deepseek_v2", "num_key_value_heads": 4, "kv_lora_rank": 64, "q_lora_rank": null, "qk_rope_head_dim": 32, "qk_nope_head_dim": 32,
		"v_head_dim": 64, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "moe_intermediate_size": 128, ` + blocks,
	"gemma":  `"config": {"model_type": "gemma", "num_key_value_heads": 2, "head_dim": 64, ` + blocks,
	"gemma2": `"config": {"model_type": "gemma2", "num_key_value_heads": 2, "head_dim": 64, "sliding_window": 64, ` + blocks,
	"gemma3_text": `"config": {"model_type": "gemma3_text", "num_key_value_heads": 2, "head_dim": 64, "sliding_window": 64,
		"layer_types": ["full_attention", "full_attention"], ` + blocks,
	"phi3":        `"config": {"model_type": "phi3", "num_key_value_heads": 2, "pad_token_id": 0, ` + blocks,
	"smollm3":     `"config": {"model_type": "smollm3", "num_key_value_heads": 2, "pad_token_id": 0, "no_rope_layers": [1, 0], ` + blocks,
	"olmo2":       `"config": {"model_type": "olmo2", "num_key_value_heads": 2, ` + blocks,
	"gpt_neox":    `"config": {"model_type": "gpt_neox", ` + blocks,
	"xlm-roberta": `"config": {"model_type": "xlm-roberta", ` + blocks,
	"opt":         `"config": {"model_type": "opt", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 512, "vocab_size": 5000}`,
	"modernbert":  `"config": {"model_type": "modernbert", "global_attn_every_n_layers": 1, "classifier_pooling": "mean", "pad_token_id": 0, ` + blocks,
	"deberta-v2": `"config": {"model_type": "deberta-v2", "relative_attention": true, "position_buckets": 32, "norm_rel_ebd": "layer_norm", "share_att_key": true,
		"pos_att_type": ["p2c", "c2p"], "position_biased_input": false, ` + blocks,
	"electra":    `"config": {"model_type": "electra", "embedding_size": 128, ` + blocks,
	"resnet":     `"model": "resnet"`,                                       // whose convolutions were seen
	"vit":        `"config": {"model_type": "vit", "num_hidden_layers": 2}`, // whose patches were, too
	"convnext":   `"config": {"model_type": "convnext", "depths": [1, 1, 1, 1]}`,
	"convnextv2": `"config": {"model_type": "convnextv2", "depths": [1, 1, 1, 1]}`,
	"dinov2":     `"config": {"model_type": "dinov2", "num_hidden_layers": 2, "image_size": 518}`,
	"clip":       `"config": {"model_type": "clip", "vision_config": {"num_hidden_layers": 2}, "text_config": {"num_hidden_layers": 2}}`,
	"swin":       `"config": {"model_type": "swin", "depths": [2, 2, 2, 2], "drop_path_rate": 0.1}`,
	"siglip":     `"config": {"model_type": "siglip", "vision_config": {"num_hidden_layers": 2}, "text_config": {"num_hidden_layers": 2}}`,
	"t5":         `"config": {"model_type": "t5", "d_model": 256, "d_kv": 64, "d_ff": 512, "num_layers": 2, "num_heads": 4, "vocab_size": 5000}`,
	"whisper": `"config": {"model_type": "whisper", "d_model": 384, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 6,
		"decoder_attention_heads": 6, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 500, "max_source_positions": 1500, "max_target_positions": 128,
		"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}`,
	"bart": `"config": {"model_type": "bart", "d_model": 256, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
		"encoder_ffn_dim": 512, "decoder_ffn_dim": 512, "vocab_size": 5000}`,
	"lm": `"config": {"model_type": "lm", "d_model": 256, "d_ff": 512, "num_layers": 2, "num_heads": 4, "vocab_size": 5000}`,
}

const blocks = `"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512, "vocab_size": 5000}`

// apart says why the engines are known to differ for a family, "" if they are
// not.
func apart(card, family, precision string) string {
	switch {
	case precision == "fp32":
	case card == "h200" && family == "resnet":
		return "1 × 1 convolutions that cuDNN hands to cuBLASLt on an H200 take other workspaces than it plans for without a device"
	}
	return ""
}

// Two independent ways to the same bytes: the steps that are modelled in Go,
// and those that PyTorch runs on a card that is not there, event by event.
func TestEnginesAgree(t *testing.T) {
	r := emulating(t)
	for _, m := range workload.Models() {
		// torchvision is not among the packages of the tests; recorded processes hold its
		// ResNets. Evaluated families are compared by pymodule's TestPairs.
		if _, ok := small[m.Config.ModelType]; !ok && m.Config.ModelType != "torchvision_resnet" && !models.IsEvaluated(m.Config) {
			t.Errorf("%s: there is no small model of its family, %s", m.ID, m.Config.ModelType)
		}
	}
	for card, precisions := range map[string][]string{
		"h200": {"fp32", "amp-bf16"}, "rtx-4090": {"fp32", "amp-bf16"}, "a100-80gb": {"fp32", "amp-bf16"}, "b200": {"fp32", "amp-bf16"},
		"rtx-3060": {"fp32", "amp-bf16"}, "t4": {"fp32", "amp-fp16"},
	} {
		for i, family := range slices.Sorted(maps.Keys(small)) {
			for j, precision := range precisions {
				inShort := i%2 == j && (card != "rtx-4090" || i%3 == 0)
				if apart(card, family, precision) != "" || !asked(card, family) || testing.Short() && !inShort {
					continue
				}
				t.Run(card+"/"+family+"/"+precision, func(t *testing.T) {
					agree(t, r, card, `{`+small[family]+`, "batch": 4, "precision": "`+precision+`"}`)
				})
			}
		}
	}
}

// asked says which families are compared on a card: all of them on two, on the
// others those with convolutions, whose workspaces are the card's own. On a
// B200 cuDNN's attention takes other workspaces, too: with dropout for BERT, with
// heads that share keys for Llama.
func asked(card, family string) bool {
	return card == "h200" || card == "rtx-4090" || family == "resnet" || family == "vit" || family == "whisper" ||
		card == "b200" && (family == "bert" || family == "llama") || card == "a100-80gb" && family == "convnext"
}

// The same for adapters and the loops of libraries, which PEFT and the libraries
// themselves make and run.
func TestEnginesAgreeWithLibraries(t *testing.T) {
	r := emulating(t)
	for name, test := range map[string]struct{ family, keys, packages string }{
		"LoRA":                 {"gpt2", `"adapter": {"rank": 8}`, "peft"},
		"LoRA, checkpointing":  {"llama", `"adapter": {"rank": 8}, "precision": "bf16", "checkpointing": true`, "peft"},
		"LoRA of a head":       {"bert", `"adapter": {"rank": 8, "targets": "all-linear", "dropout": 0.1, "task_type": "SEQ_CLS"}, "precision": "amp-bf16"`, "peft"},
		"DoRA":                 {"llama", `"adapter": {"rank": 8, "targets": "all-linear", "dropout": 0.1, "dora": true}, "precision": "amp-bf16"`, "peft"},
		"Trainer":              {"gpt2", `"loop": "trainer", "precision": "amp-bf16", "clip_grad_norm": true, "optimizer_impl": "fused"`, "accelerate"},
		"Trainer, accumulates": {"bert", `"loop": "trainer", "accumulate": 2, "attention_mask": "padded"`, "accelerate"},
		"Trainer, LoRA":        {"llama", `"loop": "trainer", "adapter": {"rank": 8}, "precision": "amp-bf16"`, "accelerate peft"},
		"Trainer, DoRA":        {"gpt2", `"loop": "trainer", "adapter": {"rank": 8, "targets": "all-linear", "dropout": 0.1, "dora": true}, "precision": "amp-bf16"`, "accelerate peft"},
		"Trainer, Adafactor":   {"t5", `"loop": "trainer", "optimizer": "adafactor"`, "accelerate"},
		"Accelerate":           {"llama", `"loop": "accelerate", "accumulate": 2, "precision": "amp-fp16", "clip_grad_norm": true`, "accelerate"},
		"Lightning":            {"gpt2", `"loop": "lightning", "precision": "amp-bf16", "clip_grad_norm": true`, "lightning"},
		"Muon":                 {"t5", `"optimizer": "muon", "optimizer_impl": "fused", "precision": "amp-bf16", "clip_grad_norm": true`, ""},
		"Muon, LoRA":           {"llama", `"optimizer": "muon", "adapter": {"rank": 8}`, "peft"},
		"a loop of one's own":  {"bert", `"loop": {"outputs": "kept", "zero_grad": "before-backward", "build": "cpu"}, "accumulate": 2`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			needPackages(t, r, test.packages)
			agree(t, r, "h200", `{`+small[test.family]+`, "batch": 4, `+test.keys+`}`)
		})
	}
}

// needPackages skips a test where the Python has not all of some packages.
func needPackages(t *testing.T, r *engine.Runner, packages string) {
	t.Helper()
	for _, p := range strings.Fields(packages) {
		if err := exec.Command(r.Python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('"+p+"') is None)").Run(); err != nil {
			t.Skipf("NOT TESTED: the Python has no %s", p)
		}
	}
}

// Weights that bitsandbytes stores are loaded in an order that means nothing;
// what they take and what steps take is the same.
func TestEnginesAgreeOnQuantized(t *testing.T) {
	r := emulating(t)
	needPackages(t, r, "peft bitsandbytes accelerate")
	for _, test := range []struct{ family, keys string }{
		{"llama", `"adapter": {"rank": 8}, "quantize": "nf4-double", "precision": "amp-bf16"`},
		{"gpt2", `"adapter": {"rank": 8, "targets": "all-linear"}, "quantize": "nf4"`},
		{"bert", `"adapter": {"rank": 8}, "quantize": "int8", "precision": "bf16"`},
	} {
		w := workloadtest.Parse(t, `{`+small[test.family]+`, "batch": 4, `+test.keys+`}`)
		card := workloadtest.Card(t, "h200")
		got, err := r.Emulate(t.Context(), analysis.Request{Workload: w, Card: card}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		want, err := predict.Predict(w, card, predict.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Parameters != want.Parameters || got.ModelAllocated != want.ModelAllocated || !slices.Equal(got.Steps, want.Steps) {
			t.Errorf("%s, %s: emulated %d %d %+v, predicted %d %d %+v", test.family, test.keys,
				got.Parameters, got.ModelAllocated, got.Steps, want.Parameters, want.ModelAllocated, want.Steps)
		}
	}
}

func agree(t *testing.T, r *engine.Runner, card, text string) {
	t.Helper()
	w := workloadtest.Parse(t, text)
	q := analysis.Request{Workload: w}
	q.Card = workloadtest.Card(t, card)
	err := r.Check(t.Context(), evidence.Emulated, q, engine.Measurement{}, func(m engine.Measurement) error {
		found, err := engine.ValidatePrediction(t.Context(), w, m, "")
		if err == nil && found.Verdict != engine.Pass {
			c := found.Comparison
			at := func(i int) trace.AllocatorRequest {
				if s := c.Stretches[0]; s.From[i] < len(c.Requests[i]) {
					return c.Requests[i][s.From[i]]
				}
				return trace.AllocatorRequest{}
			}
			t.Errorf("%s: the engines part after %d of %d requests, at %+v predicted and %+v emulated", text, c.Before, len(c.Requests[0]), at(0), at(1))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestEmulatedSpeed estimates steps that were timed on an H200.
func TestEmulatedSpeed(t *testing.T) {
	r := emulating(t)
	for text, seconds := range map[string]float64{
		`{"model": "gpt2", "batch": 8, "sequence": 128, "precision": "fp32"}`:      0.0333,
		`{"model": "bert", "batch": 64, "sequence": 128, "precision": "amp-bf16"}`: 0.0448,
		`{"model": "resnet", "batch": 64, "precision": "tf32"}`:                    0.0343,
	} {
		w := workloadtest.Parse(t, text)
		q := analysis.Request{Workload: w}
		q.Card = workloadtest.Card(t, "h200")
		e, err := r.Emulate(t.Context(), q, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if off := e.StepSeconds/seconds - 1; math.Abs(off) > steptime.Stated.NineInTen {
			t.Errorf("%s: %.1f ms a step, %+.0f %% off", text, 1e3*e.StepSeconds, 100*off)
		}
		if want := float64(w.Batch) / e.StepSeconds; math.Abs(e.SamplesPerSecond/want-1) > 0.01 {
			t.Errorf("%s: %g samples a second, want %g", text, e.SamplesPerSecond, want)
		}
	}
}
