package models

import "memorymark/internal/torch"

// endClassifier is what T5ForSequenceClassification does with the last hidden states: it takes those
// at the end of each text, and classifies them (transformers/models/t5/modeling_t5.py). How many ends there are
// is a matter of the data; here it is one in each sample, as tokenizers make it.
type endClassifier struct {
	dense, out *torch.Linear
	dropout    float64
	train      bool
}

// newEndClassifier is T5ClassificationHead.
func newEndClassifier(t *torch.Torch, width, labels int64, dropout float64, r Run) *endClassifier {
	return &endClassifier{
		dense:   t.NewLinear(width, width, true, r.DType).Named("classification_head.dense"),
		out:     t.NewLinear(width, labels, true, r.DType).Named("classification_head.out_proj"),
		dropout: dropout, train: r.Train,
	}
}

// classify ends the forward function of a model.
func (c *endClassifier) classify(t *torch.Torch, f *torch.Frame, hidden *torch.Var, batch *Batch) Output {
	samples, width := hidden.Tensor().Dim(0), hidden.Tensor().Dim(-1)
	ends := f.Let(t.Compare(torch.Borrow(batch.IDs)))
	t.Drop(t.UniqueConsecutive(t.CountLast(ends))) // whether all samples have as many
	selected := f.Let(t.MaskedRows(hidden, ends, samples))
	sentence := f.Let(t.Select(t.View(selected, samples, -1, width), 1))
	return classified(t, f, c.forward(t, sentence), batch)
}

func (c *endClassifier) forward(t *torch.Torch, x *torch.Var) torch.Value {
	f := t.Enter().In("classification_head")
	hidden := f.Let(t.Dropout(x, c.dropout, c.train))
	hidden.Set(t.Linear(hidden, c.dense))
	hidden.Set(t.Tanh(hidden))
	hidden.Set(t.Dropout(hidden, c.dropout, c.train))
	hidden.Set(t.Linear(hidden, c.out))
	return f.Return(hidden)
}
