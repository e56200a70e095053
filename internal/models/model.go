// Package models holds the model families, each file reading like the
// transformers module it stands for (transformers 5.17).
package models

import (
	"fmt"

	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// Model is a model on the device.
type Model struct {
	// Forward calls the model on a batch.
	Forward func(t *torch.Torch, b *Batch) Output
	// Kind is what the model is fed with.
	Kind Kind
	// Vocabulary or number of classes, for what a batch holds.
	NumLabels int64
}

// Kind is what a model is fed with.
type Kind int

// The kinds. They differ in what a batch holds.
const (
	Tokens   Kind = iota // ids, and a label for each sequence
	Language             // ids, which are the labels too
	Images               // pixels, and a label for each image
	Seq2Seq              // ids, and other ids as labels
)

// Batch is what a model is called with; nil where there is nothing.
type Batch struct {
	IDs, Mask, Pixels, Labels, DecoderIDs *torch.Tensor
}

// Output is the object that a model returns: it keeps its tensors until it is
// dropped, in the order of its fields.
type Output struct {
	Loss, Logits torch.Value
	Rest         []torch.Value // cached keys and values and the like
}

// New makes the model of a workload on the device.
func New(t *torch.Torch, w *workload.Workload) (*Model, error) {
	c := w.Config
	dtype := torch.Float32
	if w.Precision == workload.BF16 {
		dtype = torch.BFloat16
	}
	switch c.Architecture {
	case "BertForSequenceClassification":
		cfg, err := c.Bert()
		if err != nil {
			return nil, err
		}
		return newBert(t, cfg, w, dtype)
	case "BertForMaskedLM":
		cfg, err := c.Bert()
		if err != nil {
			return nil, err
		}
		return newBertMaskedLM(t, cfg, w, dtype)
	case "RobertaForMaskedLM":
		cfg, err := c.Roberta()
		if err != nil {
			return nil, err
		}
		return newRobertaMaskedLM(t, cfg, w, dtype)
	case "DistilBertForSequenceClassification":
		cfg, err := c.DistilBert()
		if err != nil {
			return nil, err
		}
		return newDistilBert(t, cfg, w, dtype)
	case "ResNetForImageClassification":
		cfg, err := c.ResNet()
		if err != nil {
			return nil, err
		}
		return newResNet(t, cfg, w, dtype)
	case "ViTForImageClassification":
		cfg, err := c.ViT()
		if err != nil {
			return nil, err
		}
		return newViT(t, cfg, w, dtype)
	case "GPT2LMHeadModel":
		cfg, err := c.GPT2()
		if err != nil {
			return nil, err
		}
		return newGPT2(t, cfg, w, dtype)
	case "T5ForConditionalGeneration":
		cfg, err := c.T5()
		if err != nil {
			return nil, err
		}
		return newT5(t, cfg, w, dtype)
	case "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM":
		cfg, err := c.Llama()
		if err != nil {
			return nil, err
		}
		return newLlama(t, cfg, w, dtype), nil
	case "TransformerLM":
		cfg, err := c.LM()
		if err != nil {
			return nil, err
		}
		return newLM(t, cfg, w, dtype)
	default:
		return nil, fmt.Errorf("architecture %q (model_type %q) is not modelled", c.Architecture, c.ModelType)
	}
}

// Drop drops the output.
func (o Output) Drop(t *torch.Torch) {
	t.Drop(o.Loss)
	t.Drop(o.Logits)
	for _, v := range o.Rest {
		t.Drop(v)
	}
}

// classified ends the forward function of a model that classifies:
// its loss, if there are labels, and its output.
func classified(t *torch.Torch, f *torch.Frame, scores torch.Value, batch *Batch) Output {
	logits := f.Let(scores)
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(t.CrossEntropy(t.View(logits, -1, logits.Tensor().Dim(-1)), torch.Borrow(batch.Labels)))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(logits)}
	f.End()
	return out
}
