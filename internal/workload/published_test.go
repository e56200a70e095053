package workload

import "testing"

// published are config.json files as the Hugging Face Hub has them, with all
// the keys that say nothing about memory.
var published = map[string]string{
	"bert-base-uncased": `{"architectures":["BertForMaskedLM"],"attention_probs_dropout_prob":0.1,"gradient_checkpointing":false,
		"hidden_act":"gelu","hidden_dropout_prob":0.1,"hidden_size":768,"initializer_range":0.02,"intermediate_size":3072,
		"layer_norm_eps":1e-12,"max_position_embeddings":512,"model_type":"bert","num_attention_heads":12,"num_hidden_layers":12,
		"pad_token_id":0,"position_embedding_type":"absolute","transformers_version":"4.6.0.dev0","type_vocab_size":2,"use_cache":true,
		"vocab_size":30522}`,
	"roberta-base": `{"architectures":["RobertaForMaskedLM"],"attention_probs_dropout_prob":0.1,"bos_token_id":0,"eos_token_id":2,
		"hidden_act":"gelu","hidden_dropout_prob":0.1,"hidden_size":768,"initializer_range":0.02,"intermediate_size":3072,
		"layer_norm_eps":1e-05,"max_position_embeddings":514,"model_type":"roberta","num_attention_heads":12,"num_hidden_layers":12,
		"pad_token_id":1,"type_vocab_size":1,"vocab_size":50265}`,
	"distilbert-base-uncased": `{"activation":"gelu","architectures":["DistilBertForMaskedLM"],"attention_dropout":0.1,"dim":768,
		"dropout":0.1,"hidden_dim":3072,"initializer_range":0.02,"max_position_embeddings":512,"model_type":"distilbert","n_heads":12,
		"n_layers":6,"pad_token_id":0,"qa_dropout":0.1,"seq_classif_dropout":0.2,"sinusoidal_pos_embds":false,"tie_weights_":true,
		"transformers_version":"4.10.0.dev0","vocab_size":30522}`,
	"gpt2": `{"activation_function":"gelu_new","architectures":["GPT2LMHeadModel"],"attn_pdrop":0.1,"bos_token_id":50256,
		"embd_pdrop":0.1,"eos_token_id":50256,"initializer_range":0.02,"layer_norm_epsilon":1e-05,"model_type":"gpt2","n_ctx":1024,
		"n_embd":768,"n_head":12,"n_layer":12,"n_positions":1024,"resid_pdrop":0.1,"summary_activation":null,
		"summary_first_dropout":0.1,"summary_proj_to_labels":true,"summary_type":"cls_index","summary_use_proj":true,
		"task_specific_params":{"text-generation":{"do_sample":true,"max_length":50}},"vocab_size":50257}`,
	"resnet-50": `{"architectures":["ResNetForImageClassification"],"depths":[3,4,6,3],"downsample_in_first_stage":false,
		"embedding_size":64,"hidden_act":"relu","hidden_sizes":[256,512,1024,2048],"id2label":{"0":"tench","1":"goldfish"},
		"label2id":{"tench":0,"goldfish":1},"layer_type":"bottleneck","model_type":"resnet","num_channels":3,"torch_dtype":"float32",
		"transformers_version":"4.18.0.dev0"}`,
	"vit-base-patch16-224": `{"architectures":["ViTForImageClassification"],"attention_probs_dropout_prob":0.0,"encoder_stride":16,
		"hidden_act":"gelu","hidden_dropout_prob":0.0,"hidden_size":768,"id2label":{"0":"tench","1":"goldfish"},"image_size":224,
		"initializer_range":0.02,"intermediate_size":3072,"label2id":{"tench":0,"goldfish":1},"layer_norm_eps":1e-12,
		"model_type":"vit","num_attention_heads":12,"num_channels":3,"num_hidden_layers":12,"patch_size":16,"qkv_bias":true,
		"transformers_version":"4.13.0.dev0"}`,
	"Llama-3.2-1B": `{"architectures":["LlamaForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":128000,
		"eos_token_id":128001,"head_dim":64,"hidden_act":"silu","hidden_size":2048,"initializer_range":0.02,"intermediate_size":8192,
		"max_position_embeddings":131072,"mlp_bias":false,"model_type":"llama","num_attention_heads":32,"num_hidden_layers":16,
		"num_key_value_heads":8,"pretraining_tp":1,"rms_norm_eps":1e-05,"rope_scaling":{"factor":32.0,"high_freq_factor":4.0,
		"low_freq_factor":1.0,"original_max_position_embeddings":8192,"rope_type":"llama3"},"rope_theta":500000.0,
		"tie_word_embeddings":true,"torch_dtype":"bfloat16","transformers_version":"4.45.0.dev0","use_cache":true,"vocab_size":128256}`,
	"Mistral-7B-v0.1": `{"architectures":["MistralForCausalLM"],"bos_token_id":1,"eos_token_id":2,"hidden_act":"silu",
		"hidden_size":4096,"initializer_range":0.02,"intermediate_size":14336,"max_position_embeddings":32768,"model_type":"mistral",
		"num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":8,"rms_norm_eps":1e-05,"rope_theta":10000.0,
		"sliding_window":4096,"tie_word_embeddings":false,"torch_dtype":"bfloat16","transformers_version":"4.34.0.dev0",
		"use_cache":true,"vocab_size":32000}`,
	"Qwen2-0.5B": `{"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":151643,
		"hidden_act":"silu","hidden_size":896,"initializer_range":0.02,"intermediate_size":4864,"max_position_embeddings":131072,
		"max_window_layers":24,"model_type":"qwen2","num_attention_heads":14,"num_hidden_layers":24,"num_key_value_heads":2,
		"rms_norm_eps":1e-06,"rope_theta":1000000.0,"sliding_window":131072,"tie_word_embeddings":true,"torch_dtype":"bfloat16",
		"transformers_version":"4.40.1","use_cache":true,"use_sliding_window":false,"vocab_size":151936}`,
	"Qwen2.5-0.5B": `{"architectures":["Qwen2ForCausalLM"],"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":151643,
		"hidden_act":"silu","hidden_size":896,"initializer_range":0.02,"intermediate_size":4864,"max_position_embeddings":32768,
		"max_window_layers":24,"model_type":"qwen2","num_attention_heads":14,"num_hidden_layers":24,"num_key_value_heads":2,
		"rms_norm_eps":1e-06,"rope_theta":1000000.0,"sliding_window":32768,"tie_word_embeddings":true,"torch_dtype":"bfloat16",
		"transformers_version":"4.40.1","use_cache":true,"use_mrope":false,"use_sliding_window":false,"vocab_size":151936}`,
	"Qwen3-0.6B": `{"architectures":["Qwen3ForCausalLM"],"attention_bias":false,"attention_dropout":0.0,"bos_token_id":151643,
		"eos_token_id":151645,"head_dim":128,"hidden_act":"silu","hidden_size":1024,"initializer_range":0.02,"intermediate_size":3072,
		"max_position_embeddings":40960,"max_window_layers":28,"model_type":"qwen3","num_attention_heads":16,"num_hidden_layers":28,
		"num_key_value_heads":8,"rms_norm_eps":1e-06,"rope_scaling":null,"rope_theta":1000000,"sliding_window":null,
		"tie_word_embeddings":true,"torch_dtype":"bfloat16","transformers_version":"4.51.0","use_cache":true,
		"use_sliding_window":false,"vocab_size":151936}`,
	"t5-small": `{"architectures":["T5ForConditionalGeneration"],"d_ff":2048,"d_kv":64,"d_model":512,"decoder_start_token_id":0,
		"dropout_rate":0.1,"eos_token_id":1,"initializer_factor":1.0,"is_encoder_decoder":true,"layer_norm_epsilon":1e-06,
		"model_type":"t5","n_positions":512,"num_heads":8,"num_layers":6,"output_past":true,"pad_token_id":0,
		"relative_attention_num_buckets":32,"task_specific_params":{"summarization":{"early_stopping":true,"max_length":200}},
		"vocab_size":32128}`,
	"flan-t5-small": `{"architectures":["T5ForConditionalGeneration"],"d_ff":1024,"d_kv":64,"d_model":512,"decoder_start_token_id":0,
		"dropout_rate":0.1,"eos_token_id":1,"feed_forward_proj":"gated-gelu","initializer_factor":1.0,"is_encoder_decoder":true,
		"layer_norm_epsilon":1e-06,"model_type":"t5","n_positions":512,"num_decoder_layers":8,"num_heads":6,"num_layers":8,
		"output_past":true,"pad_token_id":0,"relative_attention_max_distance":128,"relative_attention_num_buckets":32,
		"tie_word_embeddings":false,"transformers_version":"4.23.1","use_cache":true,"vocab_size":32128}`,
	"flan-t5-base, whose file says more": `{"architectures":["T5ForConditionalGeneration"],"d_ff":2048,"d_kv":64,"d_model":768,
		"decoder_start_token_id":0,"dense_act_fn":"gelu_new","dropout_rate":0.1,"eos_token_id":1,"feed_forward_proj":"gated-gelu",
		"initializer_factor":1.0,"is_encoder_decoder":true,"is_gated_act":true,"layer_norm_epsilon":1e-06,"model_type":"t5",
		"n_positions":512,"num_decoder_layers":12,"num_heads":12,"num_layers":12,"output_past":true,"pad_token_id":0,
		"relative_attention_max_distance":128,"relative_attention_num_buckets":32,"tie_word_embeddings":false,
		"transformers_version":"4.23.1","use_cache":true,"vocab_size":32128}`,
}

// A config.json as it was downloaded is taken as it is.
func TestPublishedConfigs(t *testing.T) {
	for name, config := range published {
		if _, err := Parse([]byte(`{"config":` + config + `}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
