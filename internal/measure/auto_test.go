package measure

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
)

// unmodelled are small models of families that are not modelled, and what a
// sample of each is.
var unmodelled = map[string]struct{ keys, sample string }{
	"cohere":  {`"sequence": 16, "config": {"model_type": "cohere", "num_key_value_heads": 1, ` + blocks, "CohereForCausalLM is input_ids of 16, labels of 16"},
	"mixtral": {`"sequence": 16, "config": {"model_type": "mixtral", "num_local_experts": 2, "num_key_value_heads": 1, ` + blocks, "MixtralForCausalLM is input_ids of 16"},
	"biogpt": {`"sequence": 16, "attention_mask": "padded", "config": {"model_type": "biogpt", "architectures": ["BioGptForSequenceClassification"], "pad_token_id": 1,
		` + blocks, "BioGptForSequenceClassification is input_ids of 16, attention_mask of 16, labels"},
	"bart": {`"sequence": 16, "config": {"model_type": "bart", "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
		"decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 500}`, "BartForConditionalGeneration is input_ids of 16, labels of 16"},
	"t5": {`"sequence": 16, "config": {"model_type": "t5", "architectures": ["T5ForSequenceClassification"], "d_model": 32, "d_ff": 64, "d_kv": 16, "num_heads": 2,
		"num_layers": 1, "vocab_size": 500, "eos_token_id": 1, "decoder_start_token_id": 0, "pad_token_id": 0}`, "T5ForSequenceClassification is input_ids of 16, labels"},
	"whisper": {`"sequence": 8, "config": {"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
		"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_source_positions": 20, "max_target_positions": 8}`, "input_features of 80 × 40, labels of 8"},
	"wav2vec2": {`"sequence": 16, "config": {"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"], "num_conv_pos_embedding_groups": 2, "mask_time_length": 2, ` + blocks, "input_values of 5120"},
	"swin":     {`"config": {"model_type": "swin", "image_size": 32, "patch_size": 4, "window_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [1, 2]}`, "SwinForImageClassification is pixel_values of 3 × 32 × 32, labels"},
	"clip": {`"sequence": 16, "config": {"model_type": "clip", "architectures": ["CLIPModel"], "projection_dim": 32, "text_config": {` + blocks + `, "vision_config": {
		"image_size": 32, "patch_size": 8, "attn_implementation": "somebody/kernels", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}}`, "input_ids of 16, pixel_values of 3 × 32 × 32"},
	"multiple choice":    {`"sequence": 16, "attention_mask": "padded", ` + bert + `"architectures": ["BertForMultipleChoice"]}`, "input_ids of 4 × 16, attention_mask of 4 × 16, labels"},
	"its mean":           {`"sequence": 16, "loss": "mean", ` + bert + `"architectures": ["BertForMultipleChoice"]}`, "BertForMultipleChoice is input_ids of 4 × 16"},
	"next sentence":      {`"sequence": 16, ` + bert + `"architectures": ["BertForNextSentencePrediction"]}`, "input_ids of 16, labels"},
	"pretraining":        {`"sequence": 16, ` + bert + `"architectures": ["BertForPreTraining"]}`, "input_ids of 16, labels of 16, next_sentence_label"},
	"replaced tokens":    {`"sequence": 16, "config": {"model_type": "electra", "embedding_size": 16, "architectures": ["ElectraForPreTraining"], ` + blocks, "input_ids of 16, labels of 16"},
	"table":              {`"sequence": 16, "config": {"model_type": "tapas", "architectures": ["TapasForQuestionAnswering"], ` + blocks, "input_ids of 16, labels of 16"},
	"document":           {`"sequence": 16, "config": {"model_type": "layoutlm", "architectures": ["LayoutLMForQuestionAnswering"], ` + blocks, "input_ids of 16, start_positions, end_positions"},
	"question of images": {`"sequence": 16, "config": {"model_type": "vilt", "architectures": ["ViltForQuestionAnswering"], "image_size": 32, "patch_size": 8, ` + blocks, "input_ids of 16, pixel_values of 3 × 32 × 32, labels of 2"},
	"masked patches":     {`"config": {"model_type": "vit", "architectures": ["ViTForMaskedImageModeling"], "image_size": 32, "patch_size": 8, "encoder_stride": 8, ` + blocks, "pixel_values of 3 × 32 × 32, bool_masked_pos of 16"},
	"masked frames": {`"config": {"model_type": "videomae", "architectures": ["VideoMAEForPreTraining"], "image_size": 32, "patch_size": 8, "num_frames": 4, "decoder_num_hidden_layers": 1,
		"decoder_hidden_size": 32, "decoder_intermediate_size": 64, "decoder_num_attention_heads": 2, ` + blocks, "pixel_values of 4 × 3 × 32 × 32, bool_masked_pos of 32"},
	"depth": {
		`"image": 32, "config": {"model_type": "glpn", "architectures": ["GLPNForDepthEstimation"], "depths": [1, 1, 1, 1], "hidden_sizes": [8, 8, 16, 16], "num_attention_heads": [1, 1, 2, 2], "decoder_hidden_size": 16}`,
		"GLPNForDepthEstimation is pixel_values of 3 × 32 × 32, labels of 32 × 32",
	},
	"backbone": {`"image": 64, "loss": "mean", "config": {"model_type": "detr", "architectures": ["DetrForObjectDetection"], "use_timm_backbone": false, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
		"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "backbone_config": {"model_type": "resnet", "depths": [1, 1],
		"hidden_sizes": [8, 16], "embedding_size": 8, "out_features": ["stage2"]}}`, "pixel_values of 3 × 64 × 64"}, // which has no sdpa
	"frames of sound": {`"sequence": 16, ` + wav2vec2 + `"architectures": ["Wav2Vec2ForAudioFrameClassification"]}`, "input_values of 5120, labels of 15 × 2"},
	"speakers":        {`"sequence": 32, ` + wav2vec2 + `"architectures": ["Wav2Vec2ForXVector"]}`, "input_values of 10240, labels"},
	"series":          {`"config": {"model_type": "patchtst", "architectures": ["PatchTSTForClassification"], "num_input_channels": 3, "num_targets": 4}`, "past_values of 32 × 3, target_values"},
	"bert":            {`"sequence": 16, "config": {"model_type": "bert", "window": 4, ` + blocks, "BertForSequenceClassification is input_ids of 16, labels"}, // with a key that is not modelled
}

const (
	bert     = `"config": {"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 500, `
	wav2vec2 = `"config": {"model_type": "wav2vec2", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "num_conv_pos_embedding_groups": 2, "mask_time_length": 2, `
)

func runnable(t *testing.T, keys string) *workload.Workload {
	t.Helper()
	w, err := workload.ParseRunnable([]byte("{" + keys + "}"))
	if err != nil {
		t.Fatalf("%s: %v", keys, err)
	}
	w.Unmodelled = cmp.Or(w.Unmodelled, "for the test") // the family may have been modelled since
	return w
}

// TestUnmodelled trains models that only transformers knows.
func TestUnmodelled(t *testing.T) {
	s := start(t, SessionOptions{})
	for name, family := range unmodelled {
		t.Run(name, func(t *testing.T) {
			w := runnable(t, family.keys)
			if err := s.Prepare(context.Background(), w, nil); err != nil {
				t.Fatal(err)
			}
			r, err := s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{2}, Steps: 2}, nil)
			if err != nil {
				t.Fatal(err)
			}
			o := &r.Outcomes[0]
			if o.Failure != nil {
				t.Fatalf("%s\n%s", o.Failure.Message, o.Failure.Traceback)
			}
			if o.Steps[0].Phases["backward"].Allocated == 0 || r.Parameters == 0 {
				t.Errorf("it took %+v with %d parameters", o.Steps[0], r.Parameters)
			}
			if notes := strings.Join(r.Notes, "; "); !strings.Contains(notes, family.sample) {
				t.Errorf("the notes are %q, without %q", notes, family.sample)
			}
			if name == "bert" && !slices.Contains(r.Notes, "BertConfig has no window: left out") {
				t.Errorf("nobody is told that a key was left out: %q", r.Notes)
			}
		})
	}
}

// TestUnmodelledRefusals are configurations that name what is not transformers'
// own, or what would have to be fetched.
func TestUnmodelledRefusals(t *testing.T) {
	s := start(t, SessionOptions{})
	for name, c := range map[string]struct{ config, want string }{
		"type":                        {`"model_type": "nonsense"`, "model_type 'nonsense' is not known to transformers"},
		"class":                       {`"model_type": "biogpt", "architectures": ["Trainer"]`, "architecture 'Trainer' is none of transformers' biogpt: BioGptForCausalLM"},
		"other's":                     {`"model_type": "biogpt", "architectures": ["GPT2LMHeadModel"]`, "is none of transformers' biogpt"},
		"quantized":                   {`"model_type": "biogpt", "quantization_config": {"quant_method": "gptq"}`, "quantization_config is not taken from a config.json"},
		"labels":                      {`"model_type": "biogpt", "num_labels": 300000000`, "the configuration takes more than 1 GiB by itself"},
		"labels of a modelled family": {`"model_type": "bert", "num_labels": 300000000, "architectures": ["BertForSequenceClassification"]`, "the configuration takes more than 1 GiB by itself"},
		"layers": {
			`"model_type": "albert", "inner_group_num": 1000000, "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 1, "num_hidden_layers": 1`,
			"the model has more than 150,000 modules",
		},
		"type below": {`"model_type": "llava", "text_config": {"model_type": "nonsense"}`, "of a configuration within is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "layers" && testing.Short() {
				t.Skip("it makes 150,000 modules")
			}
			r, err := s.Probe(context.Background(), Probe{Workload: runnable(t, `"config": {`+c.config+`}`), Batches: []int64{1}, Steps: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Outcomes[0].Failure
			if f == nil || f.Phase != "build" || f.TooBig() || !strings.Contains(f.Message, c.want) {
				t.Fatalf("it ended with %+v", f)
			}
		})
	}
}

// TestNothingFetched lets configurations name kernels and weights, in every key
// by which transformers would fetch them. No one is asked.
func TestNothingFetched(t *testing.T) {
	stub, called := t.TempDir(), filepath.Join(t.TempDir(), "called")
	for name, text := range map[string]string{
		"kernels/__init__.py":             "import os\n\ndef __getattr__(name):\n    open(os.environ['KERNELS_CALLED'], 'a').write(name + '\\n')\n    raise AttributeError(name)\n",
		"kernels-99.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: kernels\nVersion: 99.0\n",
	} {
		path := filepath.Join(stub, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		testmachine.WriteFile(t, path, text)
	}
	var fetched atomic.Int64
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer hub.Close()
	s := start(t, SessionOptions{Env: []string{"PYTHONPATH=" + stub, "KERNELS_CALLED=" + called, "HF_ENDPOINT=" + hub.URL}})
	_ = os.Remove(called) // importing transformers may look around
	for _, key := range []string{"attn_implementation", "_attn_implementation", "_attn_implementation_internal", "experts_implementation"} {
		w := runnable(t, `"sequence": 8, "config": {"model_type": "cohere", "`+key+`": "somebody/kernels", "num_key_value_heads": 1, `+blocks)
		r, err := s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{1}, Steps: 1}, nil)
		if err != nil || r.Outcomes[0].Failure != nil {
			t.Errorf("%s: %v, %+v", key, err, r)
		}
	}
	// Of families that are modelled, too, where they are ignored.
	w, err := workload.ParseRunnable([]byte(`{"sequence": 8, "config": {"model_type": "bert", "attn_implementation": "somebody/kernels",
		"torch_dtype": "somebody/kernels", "auto_map": {"AutoModel": "somebody/code"}, "_name_or_path": "somebody/weights", ` + blocks + `}`))
	if err != nil || w.Unmodelled != "" {
		t.Fatalf("%v, %+v", err, w)
	}
	r, err := s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{1}, Steps: 1}, nil)
	if err != nil || r.Outcomes[0].Failure != nil {
		t.Errorf("%v, %+v", err, r)
	}
	for _, config := range []string{
		`"model_type": "detr", "use_timm_backbone": false, "use_pretrained_backbone": true, "backbone": "somebody/backbone"`,
		`"model_type": "dpt", "backbone": "somebody/backbone", "use_pretrained_backbone": true, "backbone_config": null`,
	} {
		w := runnable(t, `"image": 32, "config": {`+config+`}`)
		if _, err := s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{1}, Steps: 1}, nil); err != nil {
			t.Error(err)
		}
	}
	if n := fetched.Load(); n > 0 {
		t.Errorf("%d files were asked for", n)
	}
	if names, err := os.ReadFile(called); err == nil {
		t.Errorf("the package of kernels was asked for %q", names)
	}
}
