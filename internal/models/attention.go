package models

import "memorymark/internal/torch"

// eagerAttention is eager_attention_forward of the encoders: softmax of the
// scaled scores in their own type. It returns the weights too, which callers
// keep for a while.
func eagerAttention(t *torch.Torch, q, k, v, mask torch.X, dropout float64) (out, weights torch.Value) {
	f := t.Enter()
	w := f.Let(t.Scale(t.MatMul(q, t.Transpose(k, 2, 3))))
	if mask != nil {
		w.Set(t.Add(w, mask))
	}
	w.Set(t.Softmax(w, torch.NoDType))
	w.Set(t.Dropout(w, dropout, true))
	o := f.Let(t.MatMul(w, v))
	o.Set(t.Contiguous(t.Transpose(o, 1, 2)))
	out, weights = f.Keep(o), f.Keep(w)
	f.End()
	return out, weights
}
