package models

import "memorymark/internal/torch"

// This file has the heads that families share. They stand on a model's trunk,
// its forward function up to the last hidden states; what that returns is an
// object that lives until the head's forward function ends.

// trunk is what a model is without its head.
type trunk func(t *torch.Torch, batch *Batch) trunkOutput

// trunkOutput is the object that a trunk returns.
type trunkOutput struct {
	hidden torch.Value   // last_hidden_state
	pooled torch.Value   // pooler_output, nothing without a pooler
	rest   []torch.Value // cached keys and values
}

// let makes a name for the object, and one for its last hidden states.
func (o trunkOutput) let(f *torch.Frame) (hidden *torch.Var) {
	hidden = f.Let(o.hidden)
	f.Let(o.pooled)
	for _, v := range o.rest {
		f.Let(v)
	}
	return hidden
}

// enter begins a trunk's forward function. A head knows the trunk by a name; by
// itself it has none.
func enter(t *torch.Torch, name string) *torch.Frame {
	f := t.Enter()
	if name != "" {
		f.In(name)
	}
	return f
}

// bare is a model without a head. It has no loss, so the mean of its last hidden
// states stands for one.
func bare(forward trunk) *Model {
	return &Model{Forward: func(t *torch.Torch, batch *Batch) Output {
		o := forward(t, batch)
		return Output{Logits: o.hidden, Rest: append([]torch.Value{o.pooled}, o.rest...)}
	}}
}

// tokenClassifier is BertForTokenClassification and those like it, and
// GenericForTokenClassification, whose loss is computed in float32.
type tokenClassifier struct {
	trunk
	name       string // of the classifier
	classifier *torch.Linear
	dropout    float64
	train      bool
	inFloat32  bool
}

func (m *tokenClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	outputs := m.trunk(t, batch).let(f)
	sequence := f.Let(t.Dropout(outputs, m.dropout, m.train))
	logits := f.Let(t.In(m.name, func() torch.Value { return t.Linear(sequence, m.classifier) }))
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(m.loss(t, logits, batch.Labels))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(logits)}
	f.End()
	return out
}

// loss is CrossEntropyLoss, or ForTokenClassification
// (transformers/loss/loss_utils.py).
func (m *tokenClassifier) loss(t *torch.Torch, logits *torch.Var, labels *torch.Tensor) torch.Value {
	f := t.Enter()
	flat := f.Let(t.View(logits, -1, logits.Tensor().Dim(-1)))
	targets := f.Let(t.View(torch.Borrow(labels), -1))
	if m.inFloat32 {
		flat.Set(t.To(flat, torch.Float32))
	}
	return f.Return(t.CrossEntropy(flat, targets))
}

// decoderDropout is what decoders drop before they classify tokens.
func decoderDropout(classifier, hidden *float64) float64 {
	switch {
	case classifier != nil:
		return *classifier
	case hidden != nil:
		return *hidden
	default:
		return 0.1
	}
}

// spanClassifier is BertForQuestionAnswering and those like it: where an answer
// starts and where it ends.
type spanClassifier struct {
	trunk
	classifier *torch.Linear // qa_outputs
	dropout    float64       // of the hidden states, 0 for none
	train      bool
	apart      bool // the loss is a function of its own
}

func (m *spanClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	starts, ends := f.Let(torch.Value{}), f.Let(torch.Value{}) // arguments, which are bound again
	outputs := m.trunk(t, batch).let(f)
	sequence := f.Let(outputs)
	if m.dropout > 0 {
		sequence.Set(t.Dropout(sequence, m.dropout, m.train))
	}
	return m.spans(t, f, sequence, starts, ends, batch)
}

// spans ends the forward function: the logits of both ends, and their loss.
func (m *spanClassifier) spans(t *torch.Torch, f *torch.Frame, sequence, starts, ends *torch.Var, batch *Batch) Output {
	logits := f.Let(t.In("qa_outputs", func() torch.Value { return t.Linear(sequence, m.classifier) }))
	parts := t.Split(logits, 1, -1)
	start, end := f.Let(parts[0]), f.Let(parts[1])
	start.Set(t.Contiguous(t.Squeeze(start, -1)))
	end.Set(t.Contiguous(t.Squeeze(end, -1)))
	loss := f.Let(torch.Value{})
	switch {
	case batch.Starts == nil:
	case m.apart: // ForQuestionAnsweringLoss (transformers/loss/loss_utils.py)
		g := t.Enter()
		loss.Set(g.Return(spanLoss(t, g, start, end, g.Let(torch.Value{}), g.Let(torch.Value{}), batch)))
	default:
		loss.Set(spanLoss(t, f, start, end, starts, ends, batch))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(start), Rest: []torch.Value{f.Keep(end)}}
	f.End()
	return out
}

// spanLoss is the mean of the losses of both ends, whose positions are clamped to
// the length of the sequence.
func spanLoss(t *torch.Torch, f *torch.Frame, start, end, starts, ends *torch.Var, batch *Batch) torch.Value {
	starts.Set(t.Integers(torch.Borrow(batch.Starts)))
	ends.Set(t.Integers(torch.Borrow(batch.Ends)))
	first := f.Let(t.CrossEntropy(start, starts))
	second := f.Let(t.CrossEntropy(end, ends))
	return t.Scale(t.Add(first, second))
}

// lastTokenClassifier is GPT2ForSequenceClassification and
// GenericForSequenceClassification: every token gets logits, and those of the
// last one that is no padding count.
type lastTokenClassifier struct {
	trunk
	score *torch.Linear
}

func (m *lastTokenClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	o := m.trunk(t, batch)
	hidden := f.Let(o.hidden)
	logits := f.Let(t.In("score", func() torch.Value { return t.Linear(hidden, m.score) }))
	samples, length := batch.IDs.Dim(0), batch.IDs.Dim(1)
	last := f.Let(torch.Value{})                                            // which the source names first, where it is -1
	present := f.Let(t.To(t.Compare(torch.Borrow(batch.IDs)), torch.Int32)) // input_ids != pad_token_id
	indices := f.Let(t.Full(torch.Int32, length))                           // arange
	last.Set(t.ArgMaxLast(t.Mul(indices, present)))
	pooled := f.Let(t.IndexRows(logits, t.Arange(samples), last))
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(t.CrossEntropy(t.View(pooled, -1, pooled.Tensor().Dim(-1)), t.View(torch.Borrow(batch.Labels), -1)))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(pooled), Cache: o.rest}
	f.End()
	return out
}
