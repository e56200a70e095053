package models

import "memorymark/internal/torch"

// This file has T5's heads but that of T5ForConditionalGeneration.

func newT5Alone(t *torch.Torch, c *t5Config, r Run) (*Model, error) {
	m, err := newT5Model(t, c, r, true, nil)
	if err != nil {
		return nil, err
	}
	return bare(m.both), nil
}

// both is T5Model.forward: encoder and decoder.
func (m *t5) both(t *torch.Torch, batch *Batch) trunkOutput {
	f := t.Enter()
	padded := padding{mask: batch.Mask, ones: !batch.Padded}
	encoded := f.Let(m.stack(t, &m.encoder, torch.Borrow(batch.IDs), nil, padded, encoderDecoderCache{}))
	cache := m.newCache()
	decoded := f.Let(m.stack(t, &m.decoder, torch.Borrow(batch.DecoderIDs), encoded, padded, cache))
	out := trunkOutput{hidden: f.Keep(decoded), rest: append(cache.tensors(), f.Keep(encoded))}
	f.End()
	return out
}

func newT5Encoder(t *torch.Torch, c *t5Config, r Run) (*Model, error) {
	m, err := newT5Model(t, c, r, false, nil)
	if err != nil {
		return nil, err
	}
	return bare(m.encode), nil
}

// encode is T5EncoderModel.forward.
func (m *t5) encode(t *torch.Torch, batch *Batch) trunkOutput {
	padded := padding{mask: batch.Mask, ones: !batch.Padded}
	return trunkOutput{hidden: m.stack(t, &m.encoder, torch.Borrow(batch.IDs), nil, padded, encoderDecoderCache{})}
}

func newT5Tokens(t *torch.Torch, c *t5Config, r Run) (*Model, error) {
	m, err := newT5Model(t, c, r, false, nil)
	if err != nil {
		return nil, err
	}
	h := &tokenClassifier{
		trunk: func(t *torch.Torch, batch *Batch) trunkOutput {
			f := enter(t, "transformer")
			defer f.End()
			return m.encode(t, batch)
		},
		name: "classifier", classifier: t.NewLinear(c.ModelSize, c.NumLabels, true, r.DType).Named("classifier"), dropout: c.ClassifierDropout, train: r.Train,
	}
	return &Model{Forward: h.forward}, nil
}

// t5Classifier is T5ForSequenceClassification: the decoder reads what the encoder
// did, one place later.
type t5Classifier struct {
	*t5
	*endClassifier
}

func newT5Classifier(t *torch.Torch, c *t5Config, r Run) (*Model, error) {
	m, err := newT5Model(t, c, r, true, nil)
	if err != nil {
		return nil, err
	}
	h := t5Classifier{m, newEndClassifier(t, c.ModelSize, c.NumLabels, c.ClassifierDropout, r)}
	return &Model{Forward: h.forward}, nil
}

func (m t5Classifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	ids := f.Let(shiftTokensRight(t, batch.IDs))
	o := m.transform(t, batch, ids, batch.Labels == nil)
	out := m.classify(t, f, f.Let(o.hidden), batch)
	out.Rest = o.rest
	return out
}

// transform is T5Model.forward under a head, which says whether keys and values are
// kept.
func (m t5Classifier) transform(t *torch.Torch, batch *Batch, ids *torch.Var, caches bool) trunkOutput {
	f := enter(t, "transformer")
	padded := padding{mask: batch.Mask, ones: !batch.Padded}
	encoded := f.Let(m.stack(t, &m.encoder, torch.Borrow(batch.IDs), nil, padded, encoderDecoderCache{}))
	var cache encoderDecoderCache
	if caches {
		cache = m.newCache()
	}
	decoded := f.Let(m.stack(t, &m.decoder, ids, encoded, padded, cache))
	out := trunkOutput{hidden: f.Keep(decoded), rest: append(cache.tensors(), f.Keep(encoded))}
	f.End()
	return out
}

// t5Spans is T5ForQuestionAnswering: the decoder reads what the encoder did, one
// place later.
type t5Spans struct {
	*t5
	spans spanClassifier
}

func newT5Spans(t *torch.Torch, c *t5Config, r Run) (*Model, error) {
	h := &t5Spans{}
	m, err := newT5Model(t, c, r, true, func(*t5) {
		h.spans.classifier = t.NewLinear(c.ModelSize, c.NumLabels, true, r.DType).Named("qa_outputs")
	})
	if err != nil {
		return nil, err
	}
	h.t5 = m
	return &Model{Forward: h.forward}, nil
}

func (m *t5Spans) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	decoderIDs := f.Let(shiftTokensRight(t, batch.IDs))
	padded := padding{mask: batch.Mask, ones: !batch.Padded}
	encoded := f.Let(m.stack(t, &m.encoder, torch.Borrow(batch.IDs), nil, padded, encoderDecoderCache{}))
	starts, ends := f.Let(torch.Value{}), f.Let(torch.Value{})
	var cache encoderDecoderCache
	if batch.Starts == nil {
		cache = m.newCache() // with labels it does without
	}
	decoded := f.Let(m.stack(t, &m.decoder, decoderIDs, encoded, padded, cache))
	kept := append(cache.tensors(), f.Keep(encoded))
	out := m.spans.spans(t, f, f.Let(decoded), starts, ends, batch)
	out.Rest = append(out.Rest, kept...)
	return out
}
