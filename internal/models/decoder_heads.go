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
	since  torch.Version // of transformers, takes any keyword
	make   func(t *torch.Torch, m *llama) *Model
}

// The heads, in the order of their classes.
var (
	causalHead   = decoderHead{"ForCausalLM", SameIDs, nil, older4.Transformers, causalLM}
	classesHead  = decoderHead{"ForSequenceClassification", Classes, []string{"pad_token_id"}, last4.Transformers, sequenceClassifier}
	tagsHead     = decoderHead{"ForTokenClassification", TokenTags, nil, last4.Transformers, tagger}
	spansHead    = decoderHead{"ForQuestionAnswering", Spans, nil, older4.Transformers, answerer}
	noHead       = decoderHead{"Model", NoLabels, nil, older4.Transformers, alone}
	withoutSpans = []decoderHead{causalHead, classesHead, tagsHead, noHead}
	allHeads     = []decoderHead{causalHead, classesHead, tagsHead, spansHead, noHead}
)

// decoderHeads are the rows of a family's heads, from the constructor of its
// model.
func decoderHeads[C any](name string, model func(*torch.Torch, *C, Run) *llama, heads ...decoderHead) []Head {
	var out []Head
	for _, h := range heads {
		row := needs(head(name+h.suffix, h.labels, func(t *torch.Torch, c *C, r Run) (*Model, error) {
			m := model(t, c, r)
			m.decayNorms()
			made := h.make(t, m)
			for _, r := range m.rotaries {
				r.cast(t, m.run.DType)
			}
			return made, nil
		}), h.needs...)
		out = append(out, takesKeywords(row, h.since))
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
