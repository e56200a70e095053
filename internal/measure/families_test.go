package measure

import (
	"context"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// families are small models of every kind, as keys of a workload.
var families = map[string]string{
	"bert":          `"sequence": 16, "config": {"model_type": "bert", ` + blocks,
	"bert-mlm":      `"sequence": 16, "config": {"model_type": "bert", "architectures": ["BertForMaskedLM"], ` + blocks,
	"roberta":       `"sequence": 16, "config": {"model_type": "roberta", ` + blocks,
	"llama-class":   `"sequence": 16, "config": {"model_type": "llama", "architectures": ["LlamaForSequenceClassification"], "num_key_value_heads": 1, ` + blocks,
	"llama-tokens":  `"sequence": 16, "config": {"model_type": "llama", "architectures": ["LlamaForTokenClassification"], "num_key_value_heads": 1, ` + blocks,
	"roberta-class": `"sequence": 16, "config": {"model_type": "roberta", "architectures": ["RobertaForSequenceClassification"], ` + blocks,
	"distilbert":    `"sequence": 16, "config": {"model_type": "distilbert", "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64, "vocab_size": 500}`,
	"gpt2":          `"sequence": 16, "config": {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32, "vocab_size": 500}`,
	"llama":         `"sequence": 16, "config": {"model_type": "llama", "num_key_value_heads": 1, ` + blocks,
	"mistral":       `"sequence": 16, "config": {"model_type": "mistral", "num_key_value_heads": 1, ` + blocks,
	"qwen2":         `"sequence": 16, "config": {"model_type": "qwen2", "num_key_value_heads": 1, ` + blocks,
	"qwen3":         `"sequence": 16, "config": {"model_type": "qwen3", "num_key_value_heads": 1, ` + blocks,
	"gemma":         `"sequence": 16, "config": {"model_type": "gemma", "num_key_value_heads": 1, "head_dim": 16, ` + blocks,
	"gemma2":        `"sequence": 16, "config": {"model_type": "gemma2", "num_key_value_heads": 1, "head_dim": 16, "sliding_window": 8, ` + blocks,
	"gemma3":        `"sequence": 16, "config": {"model_type": "gemma3_text", "num_key_value_heads": 1, "head_dim": 16, "sliding_window": 8, ` + blocks,
	"phi3":          `"sequence": 16, "config": {"model_type": "phi3", "num_key_value_heads": 1, "pad_token_id": 0, ` + blocks,
	"smollm3":       `"sequence": 16, "config": {"model_type": "smollm3", "num_key_value_heads": 1, "pad_token_id": 0, "no_rope_layers": [1, 0], ` + blocks,
	"olmo2":         `"sequence": 16, "config": {"model_type": "olmo2", "num_key_value_heads": 1, ` + blocks,
	"mixtral":       `"sequence": 16, "config": {"model_type": "mixtral", "num_key_value_heads": 1, "num_local_experts": 4, ` + blocks,
	"qwen3_moe":     `"sequence": 16, "config": {"model_type": "qwen3_moe", "num_key_value_heads": 1, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "mlp_only_layers": [0], ` + blocks,
	"gpt_neox":      `"sequence": 16, "config": {"model_type": "gpt_neox", ` + blocks,
	"xlm-roberta":   `"sequence": 16, "config": {"model_type": "xlm-roberta", ` + blocks,
	"opt":           `"sequence": 16, "config": {"model_type": "opt", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 64, "vocab_size": 500}`,
	"modernbert":    `"sequence": 16, "config": {"model_type": "modernbert", "local_attention": 8, "pad_token_id": 0, ` + blocks,
	"electra":       `"sequence": 16, "config": {"model_type": "electra", "embedding_size": 16, ` + blocks,
	"deepseek_v2": `"sequence": 16, "config": {"model_type": "deepseek_v2", "first_k_dense_replace": 1, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
		"kv_lora_rank": 16, "q_lora_rank": null, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, ` + blocks,
	"deberta-v3": `"sequence": 16, "config": {"model_type": "deberta-v2", "relative_attention": true, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": true,
		"pos_att_type": ["p2c", "c2p"], "position_biased_input": false, ` + blocks,
	"resnet":       `"image": 32, "config": {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}`,
	"resnet-basic": `"image": 32, "config": {"model_type": "resnet", "layer_type": "basic", "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}`,
	"vit": `"image": 32, "config": {"model_type": "vit", "image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2,
		"num_attention_heads": 2, "intermediate_size": 64}`,
	"dinov2": `"image": 32, "config": {"model_type": "dinov2", "image_size": 48, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2,
		"num_attention_heads": 2}`,
	"clip": `"image": 32, "config": {"model_type": "clip", "architectures": ["CLIPForImageClassification"], "vision_config": {"image_size": 32, "patch_size": 8,
		"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}}`,
	"siglip": `"image": 32, "config": {"model_type": "siglip", "architectures": ["SiglipForImageClassification"], "vision_config": {"vision_use_head": false, "image_size": 32, "patch_size": 8,
		"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}}`,
	"swin":       `"image": 32, "config": {"model_type": "swin", "image_size": 32, "patch_size": 4, "window_size": 2, "embed_dim": 16, "depths": [2, 1], "num_heads": [1, 2]}`,
	"convnext":   `"image": 32, "config": {"model_type": "convnext", "hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "drop_path_rate": 0.1}`,
	"convnextv2": `"image": 32, "config": {"model_type": "convnextv2", "hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "drop_path_rate": 0.1}`,
	"t5":         `"sequence": 16, "config": {"model_type": "t5", "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2, "vocab_size": 500}`,
	"whisper": `"sequence": 16, "config": {"model_type": "whisper", "d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2,
		"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 500, "max_source_positions": 60, "max_target_positions": 128,
		"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}`,
	"bart": `"sequence": 16, "config": {"model_type": "bart", "d_model": 32, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2,
		"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 32, "vocab_size": 500}`,
	"lm": `"sequence": 16, "config": {"model_type": "lm", "d_model": 32, "d_ff": 64, "num_layers": 2, "num_heads": 2, "vocab_size": 500}`,
}

const blocks = `"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 500}`

// torchvision is a small ResNet of a library that is not always installed.
const torchvision = `"image": 32, "config": {"model_type": "torchvision_resnet", "block": "BasicBlock", "layers": [1, 1, 1, 1], "num_classes": 10}`

// small is a family's workload with some keys more.
func small(t *testing.T, family string, keys ...string) *workload.Workload {
	t.Helper()
	described := families[family]
	if family == "torchvision" {
		described = torchvision
	}
	text := "{" + strings.Join(append([]string{described}, keys...), ", ") + "}"
	w := workloadtest.Parse(t, text)
	return w
}

// trained probes two steps of a batch of two.
func trained(t *testing.T, s *Session, family string, keys ...string) (*ProbeResult, *Outcome) {
	t.Helper()
	r, err := s.Probe(context.Background(), Probe{Workload: small(t, family, keys...), Batches: []int64{2}, Steps: 2}, nil)
	if err != nil {
		t.Fatalf("%v: %v", keys, err)
	}
	return r, &r.Outcomes[0]
}

// TestFamilies trains a small model of every family under every switch that it
// takes, all in one session. It is also how other versions of PyTorch and
// transformers are tried: name their Python in MEMORYMARK_TEST_PYTHON.
func TestFamilies(t *testing.T) {
	s := start(t, SessionOptions{})
	t.Logf("PyTorch %s, transformers %s", s.Versions.Torch, s.Versions.Transformers)
	for family := range families {
		if err := s.prepare(context.Background(), SessionOptions{Device: "cpu", Workload: small(t, family)}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("families", func(t *testing.T) { // waits for those that run at once
		for family := range families {
			t.Run(family, func(t *testing.T) {
				t.Parallel()
				testFamily(t, s, family)
			})
		}
		t.Run("optimizers", func(t *testing.T) {
			t.Parallel()
			testOptimizers(t, s)
		})
	})
}

func testFamily(t *testing.T, s *Session, family string) {
	switches := []string{`"precision": "amp-bf16"`, `"attention": "eager"`, `"accumulate": 2`, `"clip_grad_norm": true`}
	if !strings.HasPrefix(family, "resnet") && !strings.HasPrefix(family, "convnext") {
		switches = append(switches, `"checkpointing": true`)
	} else if _, o := trained(t, s, family, `"checkpointing": true`); o.Failure == nil || !strings.Contains(o.Failure.Message, "does not support gradient checkpointing") {
		t.Errorf("checkpointing: %v", o.Failure)
	}
	mask := `"attention_mask": "none"`
	if family != "lm" {
		switches = append(switches, `"attention_mask": "padded"`)
		mask = `"attention_mask": "ones"`
	} else if _, o := trained(t, s, family, `"attention_mask": "ones"`); o.Failure == nil || !strings.Contains(o.Failure.Message, "leave it out") {
		t.Errorf("a mask: %v", o.Failure)
	}
	plain, o := trained(t, s, family)
	if o.Failure != nil || len(o.Steps) != 2 {
		t.Fatal(o.Failure)
	}
	if p, err := predict.Predict(small(t, family), gpu.All()[0], predict.Options{}); err == nil && p.Parameters != plain.Parameters {
		t.Errorf("%d parameters are predicted, the model has %d", p.Parameters, plain.Parameters)
	}
	if plain.ModelAllocated < 4*plain.Parameters || o.Steps[1].EndAllocated-plain.ModelAllocated < 8*plain.Parameters {
		t.Errorf("%d parameters take %d bytes, %d after a step", plain.Parameters, plain.ModelAllocated, o.Steps[1].EndAllocated)
	}
	if _, o := trained(t, s, family, switches...); o.Failure != nil || len(o.Steps) != 2 || len(o.Steps[0].Phases) != 3 {
		t.Errorf("%v: %v", switches, o.Failure)
	}
	half, o := trained(t, s, family, `"precision": "bf16"`, `"loss": "mean"`, mask)
	if o.Failure != nil {
		t.Fatalf("in bf16: %v", o.Failure)
	}
	if half.Parameters != plain.Parameters || half.ModelAllocated > plain.ModelAllocated*6/10 {
		t.Errorf("in bf16 the model takes %d bytes of %d", half.ModelAllocated, plain.ModelAllocated)
	}
}

// testOptimizers holds what each optimizer keeps for a parameter, however it
// is computed.
func testOptimizers(t *testing.T, s *Session) {
	state := map[workload.Optimizer]int64{workload.AdamW: 8, workload.Adam: 8, workload.SGD: 0, workload.SGDMomentum: 4, workload.NoOptimizer: 0}
	for optimizer, perParameter := range state {
		for _, impl := range workload.Choices("optimizer_impl") {
			r, o := trained(t, s, "bert", `"optimizer": "`+string(optimizer)+`"`, `"optimizer_impl": "`+impl+`"`)
			if o.Failure != nil {
				t.Errorf("%s, %s: %v", optimizer, impl, o.Failure)
				continue
			}
			const inputs = 4096 // and Adam's counts of steps, 4 bytes a tensor
			if kept := o.Steps[1].EndAllocated - r.ModelAllocated - perParameter*r.Parameters; kept < 0 || kept > inputs {
				t.Errorf("%s, %s: keeps %d bytes beside %d for each of %d parameters", optimizer, impl, kept, perParameter, r.Parameters)
			}
		}
	}
}
