package predict

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Whatever is allowed is predicted, or refused with a reason, since some models
// and loops cannot do everything: random combinations of keys, on every card, with
// small models of every family.
// Steps must settle, parts must add up, and nothing may panic.
func TestAnythingAllowed(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	r := rand.New(rand.NewPCG(1, 2))
	predicted, refused := 0, 0
	for range n {
		text := randomWorkload(r)
		w, err := workload.Parse([]byte(text))
		if err != nil {
			refused++
			continue
		}
		cards := gpu.All()
		p, err := Predict(w, cards[r.IntN(len(cards))], Options{})
		if err != nil {
			if errors.Is(err, ErrFault) {
				t.Errorf("%s: %v", text, err)
			}
			refused++
			continue
		}
		predicted++
		var sum bytesize.Bytes
		for _, part := range p.Breakdown.Parts() {
			if sum += part.Bytes; part.Bytes < 0 {
				t.Errorf("%s: %s is %v", text, part.Name, part.Bytes)
			}
		}
		if sum != p.Breakdown.Total {
			t.Errorf("%s: the parts are %v, the total %v", text, sum, p.Breakdown.Total)
		}
		if !w.Loop.IsLibrarys() && w.Parallel == nil { // what these keep comes from pools that steps leave in different states
			if a, b := p.Steps[1].EndAllocated, p.Steps[2].EndAllocated; a != b {
				t.Errorf("%s: memory grows from step to step: %v, %v", text, a, b)
			}
		}
	}
	if predicted < n/2 {
		t.Errorf("only %d of %d were predicted, and %d were refused", predicted, n, refused)
	}
}

// smallModels are few layers of each family.
var smallModels = []string{
	`"model":"bert","config":{"num_hidden_layers":2}`, `"model":"bert-mlm","config":{"num_hidden_layers":2}`,
	`"model":"roberta","config":{"num_hidden_layers":2}`, `"model":"distilbert","config":{"n_layers":2}`,
	`"model":"gpt2","config":{"n_layer":2}`, `"model":"resnet-18","config":{"depths":[1,1,1,1]}`,
	`"model":"resnet","config":{"depths":[1,2,1,1]}`, `"model":"resnet","config":{"depths":[1,2,1,1]},"channels_last":true`,
	`"model":"resnet50","config":{"layers":[1,2,1,1]}`, `"model":"convnext-tiny","config":{"depths":[1,1,2,1]}`, `"model":"vit","config":{"num_hidden_layers":2}`,
	`"model":"dinov2-small","config":{"num_hidden_layers":2}`, `"model":"dinov2-giant","config":{"num_hidden_layers":1}`, `"model":"swin-tiny","config":{"depths":[2,1,2,1]}`,
	`"config":{"model_type":"clip","architectures":["CLIPForImageClassification"]}`, `"config":{"model_type":"siglip","architectures":["SiglipForImageClassification"]}`,
	`"model":"llama-3.2-1b","config":{"num_hidden_layers":2}`, `"model":"mistral-7b","config":{"num_hidden_layers":2}`,
	`"model":"qwen2-0.5b","config":{"num_hidden_layers":2}`, `"model":"qwen3-0.6b","config":{"num_hidden_layers":2}`, `"model":"t5-small","config":{"num_layers":2,"num_decoder_layers":1}`,
	`"model":"gemma-2b","config":{"num_hidden_layers":2}`, `"model":"gemma-2-2b","config":{"num_hidden_layers":2}`,
	`"model":"gemma-3-270m","config":{"num_hidden_layers":7}`, `"model":"phi-3-mini","config":{"num_hidden_layers":1}`,
	`"model":"pythia-160m","config":{"num_hidden_layers":2}`, `"model":"xlm-roberta-base","config":{"num_hidden_layers":2}`,
	`"model":"electra-small","config":{"num_hidden_layers":2}`, `"model":"electra-base","config":{"num_hidden_layers":2}`,
	`"model":"deberta-v3-small","config":{"num_hidden_layers":2}`, `"model":"deberta-v3-xsmall","config":{"num_hidden_layers":1,"position_biased_input":true,"share_att_key":false,"type_vocab_size":2}`,
	`"model":"modernbert-base","config":{"num_hidden_layers":4}`, `"model":"opt-125m","config":{"num_hidden_layers":2}`, `"model":"opt-350m","config":{"num_hidden_layers":2}`,
	`"model":"smollm3-3b","config":{"num_hidden_layers":4}`, `"model":"olmo-2-1b","config":{"num_hidden_layers":2}`,
	`"model":"whisper-tiny","config":{"encoder_layers":1,"decoder_layers":2,"max_target_positions":512}`, `"model":"bart-base","config":{"encoder_layers":1,"decoder_layers":2}`,
	`"model":"mixtral-8x7b","config":{"num_hidden_layers":1}`, `"model":"qwen3-30b-a3b","config":{"num_hidden_layers":2,"mlp_only_layers":[1]}`,
	`"model":"deepseek-v2-lite","config":{"num_hidden_layers":2}`,
	`"model":"flan-t5-small","config":{"num_layers":1}`, `"model":"lm-small","config":{"num_layers":2}`,
}

func randomWorkload(r *rand.Rand) string {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	return fmt.Sprintf(`{%s,"batch":%d,"sequence":%d,"image":%d,"precision":%q,"optimizer":%q,"optimizer_impl":%q,"phase":%q,"loss":%q,
		"attention":%q,"attention_mask":%q,"checkpointing":%s,"mode":%q,"accumulate":%d,"clip_grad_norm":%s,"expandable_segments":%s,
		"loop":%q%s}`,
		pick(smallModels...), 1+r.IntN(9), []int{1, 7, 64, 100, 128, 500}[r.IntN(6)], []int{224, 225, 96, 64}[r.IntN(4)],
		pick("fp32", "tf32", "amp-bf16", "amp-fp16", "bf16"), pick("adamw", "adam", "sgd", "sgd-momentum", "none"),
		pick("foreach", "fused", "loop"), pick("train", "train", "backward", "forward", "infer"), pick("labels", "mean"),
		pick("sdpa", "eager"), pick("none", "ones", "padded"), pick("true", "false"), pick("train", "eval"), 1+r.IntN(3),
		pick("true", "false"), pick("true", "false"), pick("plain", "plain", "trainer", "lightning", "accelerate"),
		pick("", "", "", `,"adapter":{"rank":4,"targets":"all-linear"}`, `,"adapter":{"rank":8,"targets":"all-linear","dora":true}`,
			`,"adapter":{"rank":8,"targets":"all-linear"},"quantize":"nf4-double"`, `,"parallel":{"kind":"ddp","gpus":8}`,
			`,"parallel":{"kind":"fsdp","gpus":2}`, `,"parallel":{"kind":"zero1","gpus":4}`))
}
