package models

import "memorymark/internal/torch"

// This file holds the heads that decoders of Llama's line have alike
// (transformers/modeling_layers.py, and ForCausalLM of each).

// decoderHead is a head: how its class is called after the family's name, what
// it is trained on, and how it is put on a model.
type decoderHead struct {
	suffix string
	labels Labels
	needs  []string
	make   func(t *torch.Torch, m *llama) *Model
}

// The heads, in the order of their classes.
var decoderKinds = []decoderHead{
	{"ForCausalLM", SameIDs, nil, causalLM},
	{"ForSequenceClassification", Classes, []string{"pad_token_id"}, sequenceClassifier},
	{"ForTokenClassification", TokenTags, nil, tagger},
	{"ForQuestionAnswering", Spans, nil, answerer},
	{"Model", NoLabels, nil, alone},
}

// decoderHeads are the rows of a family's heads.
func decoderHeads(name string) []Head {
	var out []Head
	for _, h := range decoderKinds {
		out = append(out, needs(head(name+h.suffix, h.labels, func(t *torch.Torch, c *llamaConfig, r Run) (*Model, error) {
			m := newLlama(t, c, r)
			made := h.make(t, m)
			m.rotary.cast(t, r.DType)
			return made, nil
		}), h.needs...))
	}
	return out
}

func causalLM(t *torch.Torch, m *llama) *Model {
	if !m.run.Stage.last() {
		return &Model{Forward: m.stage, Width: m.cfg.HiddenSize}
	}
	m.head = t.NewLinear(m.cfg.HiddenSize, m.cfg.VocabSize, false, m.run.DType).AsOutput("lm_head")
	if m.run.Stage != nil { // the embedding that it would share is another rank's
		return &Model{Forward: m.stage, Loss: m.lossOf, Width: m.cfg.HiddenSize}
	}
	if m.cfg.TieWordEmbeddings {
		t.Tie(m.head, m.embed)
	}
	return &Model{Forward: m.forward}
}

func sequenceClassifier(t *torch.Torch, m *llama) *Model {
	h := &lastTokenClassifier{trunk: m.trunk, score: t.NewLinear(m.cfg.HiddenSize, m.cfg.NumLabels, false, m.run.DType).Named("score")}
	return &Model{Forward: h.forward}
}

func tagger(t *torch.Torch, m *llama) *Model {
	h := &tokenClassifier{
		trunk: m.trunk, name: "score", classifier: t.NewLinear(m.cfg.HiddenSize, m.cfg.NumLabels, true, m.run.DType).Named("score"),
		dropout: decoderDropout(m.cfg.ClassifierDropout, m.cfg.HiddenDropout), train: m.run.Train, inFloat32: true,
	}
	return &Model{Forward: h.forward}
}

func answerer(t *torch.Torch, m *llama) *Model {
	if m.cfg.family == "llama" {
		m.name = "transformer" // base_model_prefix
	}
	h := &spanClassifier{trunk: m.trunk, classifier: t.NewLinear(m.cfg.HiddenSize, 2, true, m.run.DType).Named("qa_outputs"), apart: true}
	return &Model{Forward: h.forward}
}

func alone(_ *torch.Torch, m *llama) *Model {
	m.name = ""
	return bare(m.trunk)
}
