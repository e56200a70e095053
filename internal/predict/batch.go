package predict

import (
	"slices"

	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// makeBatch makes a batch on the device: ids, pixels or sounds, a mask if asked,
// labels. Those of a language model are the ids themselves, or a copy where a
// collator makes them.
func (p *program) makeBatch(collated bool) *models.Batch {
	if p.model.Feed != nil {
		p.model.Feed(p.w.Batch)
		return &models.Batch{}
	}
	w, t, shape := p.w, p.t, p.nextShape()
	b := &models.Batch{Padded: shape.padded}
	if p.head.Labels == models.Pairs {
		b.IDs = t.Input(torch.Int64, w.Batch, shape.length)
		if w.AttentionMask != workload.NoMask {
			b.Mask = t.Input(torch.Int64, w.Batch, shape.length)
		}
		b.Pixels = t.Images(w.Run().DType, w.ChannelsLast, w.Batch, 3, w.Image, w.Image)
		return b
	}
	if bins, frames := w.Features(); bins > 0 {
		b.Features = t.Input(w.Run().DType, w.Batch, bins, frames)
	} else if w.TakesImages() {
		b.Pixels = t.Images(w.Run().DType, w.ChannelsLast, slices.Concat([]int64{w.Batch}, models.ImageShape(w.Config), []int64{w.Image, w.Image})...)
	} else {
		b.IDs = t.Input(torch.Int64, w.Batch, shape.length)
	}
	if w.AttentionMask != workload.NoMask && b.IDs != nil {
		b.Mask = t.Input(torch.Int64, w.Batch, shape.length)
	}
	if w.Loss == workload.MeanLogits {
		switch {
		case p.head.Decodes && b.Features != nil:
			b.DecoderIDs = t.Input(torch.Int64, w.Batch, shape.length)
		case p.head.Decodes:
			b.DecoderIDs = b.IDs
		}
		return b
	}
	switch p.head.Labels {
	case models.Classes:
		b.Labels = t.Input(torch.Int64, w.Batch)
	case models.Spans:
		b.Starts, b.Ends = t.Input(torch.Int64, w.Batch), t.Input(torch.Int64, w.Batch)
	case models.TargetIDs, models.TokenTags:
		b.Labels = t.Input(torch.Int64, w.Batch, shape.length)
	case models.SameIDs:
		if b.Labels = b.IDs; collated {
			b.Labels = t.Input(torch.Int64, w.Batch, shape.length)
		}
	case models.NoLabels, models.Pairs:
	}
	return b
}

// dropBatch drops the dictionary; its tensors go in the order of its keys.
func (p *program) dropBatch(b *models.Batch) {
	if b == nil {
		return
	}
	tensors := []*torch.Tensor{b.IDs, b.Pixels, b.Features, b.Mask, b.Labels, b.Starts, b.Ends}
	if b.DecoderIDs != b.IDs {
		tensors = append(tensors, b.DecoderIDs)
	}
	for _, x := range tensors {
		if x != nil {
			p.t.Release(x)
		}
	}
}
