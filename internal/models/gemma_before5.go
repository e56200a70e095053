package models

import "memorymark/internal/torch"

// This file is what Gemma does otherwise in transformers 4: embeddings are scaled by a
// number on the CPU (but Gemma 3's), Gemma 2 and 3 train without a cache, their layers
// return tuples, and Gemma 3 rotates by two modules, whatever its layers are.

// gemmaAngles is where the angles are among what a layer is called with.
func gemmaAngles(family string, v Versions) keyword {
	switch {
	case family == "gemma":
		return last
	case v.Transformers.Before(5, 0):
		return first
	default:
		return behindMask
	}
}

// rotaries4 makes rotary_emb and rotary_emb_local of Gemma3TextModel.
func (m *gemma) rotaries4(t *torch.Torch, g *gemmaConfig) {
	m.rotaries = append(m.rotaries, newRotary4(t, g.rope(), m.cfg.HeadSize()), newRotary4(t, DefaultRope, m.cfg.HeadSize()))
	for i := range m.layers {
		if m.layers[i].sliding {
			m.layers[i].rotary = 1
		}
	}
}

// windowed is what a sliding layer of transformers 4.51 makes of the mask:
// torch.where(torch.tril(torch.ones_like(mask, dtype=torch.bool)), min, mask).
func windowed(t *torch.Torch, f *torch.Frame, mask *torch.Var) *torch.Var {
	own := f.Let(mask)
	outside := f.Let(t.Compare(t.Full(torch.Bool, mask.Tensor().Shape...)))
	own.Set(t.WhereScalar(outside, own))
	return own
}

// trainsWithoutCache reports whether the model makes a cache only for evaluation.
func (m *llama) trainsWithoutCache() bool {
	return m.cfg.IsGemma() && m.run.Train && m.run.Versions.Transformers.Before(5, 0)
}

// returnsTuples reports whether layers return tuples, the last of which has a name.
func (m *llama) returnsTuples() bool {
	v := m.run.Versions.Transformers
	return v.Before(4, 57) || m.cfg.IsGemma() && v.Before(5, 0)
}
