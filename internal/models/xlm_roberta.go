package models

import "memorymark/internal/torch"

var xlmRobertaFamily = Family{
	Type: "xlm-roberta", read: reads(readXLMRoberta),
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

// headFirst makes a head, and then the model that it is on.
func headFirst(t *torch.Torch, c *bertConfig, r Run, head func(below trunk) *Model) (*Model, error) {
	var m *bertModel
	made := head(func(t *torch.Torch, batch *Batch) trunkOutput { return m.forward(t, batch) })
	var err error
	m, _, err = newRobertaModel(t, c, r, false)
	return made, err
}
