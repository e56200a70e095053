package models

import "memorymark/internal/torch"

var xlmRobertaFamily = Family{
	Type: "xlm-roberta", Versions: []Versions{newest, last4, older4}, read: reads(readXLMRoberta),
	Heads: []Head{
		head("XLMRobertaForSequenceClassification", Classes, newXLMRoberta),
		head("XLMRobertaForTokenClassification", TokenTags, newXLMRobertaTokens),
		head("XLMRobertaForQuestionAnswering", Spans, newXLMRobertaSpans),
		head("XLMRobertaModel", NoLabels, newRobertaAlone),
	},
}

// This file is XLM-RoBERTa's heads
// (transformers/models/xlm_roberta/modeling_xlm_roberta.py): those of RoBERTa,
// which are made before the model is.

func newXLMRoberta(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	return headFirst(t, c, r, func(below trunk) *Model {
		return newRobertaClassifier(t, c, below, (*torch.Torch).Tanh, r)
	})
}

func newXLMRobertaTokens(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	return headFirst(t, c, r, func(below trunk) *Model { return newTokenClassifier(t, c, below, r) })
}

func newXLMRobertaSpans(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	return headFirst(t, c, r, func(below trunk) *Model { return newSpanClassifier(t, c, below, r) })
}

// headFirst makes a head, and then the model that it is on; in transformers 4, the
// model comes first.
func headFirst(t *torch.Torch, c *bertConfig, r Run, head func(below trunk) *Model) (made *Model, err error) {
	var m *bertModel
	model := func() { m, _, err = newRobertaModel(t, c, r, false) }
	if r.Versions.Transformers.Before(5, 0) {
		model()
	}
	made = head(func(t *torch.Torch, batch *Batch) trunkOutput { return m.forward(t, batch) })
	if m == nil {
		model()
	}
	return made, err
}
