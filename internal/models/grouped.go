package models

import (
	"memorymark/internal/torch"
)

// groupedOptions say how attention is computed.
type groupedOptions struct {
	eager   bool
	dropout float64
}

// groupedAttention is attention whose keys and values may have fewer heads
// than its queries: sdpa_attention_forward
// (transformers/integrations/sdpa_attention.py) or eager_attention_forward
// (transformers/models/llama/modeling_llama.py). Eager attention returns its
// weights too, which the caller keeps until it returns.
func groupedAttention(t *torch.Torch, o groupedOptions, q, k, v, mask *torch.Var) (out, weights torch.Value) {
	f := t.Enter()
	query, keys, values := f.Let(q), f.Let(k), f.Let(v)
	repeats := q.Tensor().Dim(1) / k.Tensor().Dim(1)
	if o.eager {
		return groupedEager(t, f, repeats, q, keys, values, mask, o)
	}
	masked := mask.Tensor() != nil
	gqa := repeats > 1 && !masked && k.Tensor().Dim(3) <= 256
	if repeats > 1 && !gqa {
		keys.Set(repeatHeads(t, keys, repeats))
		values.Set(repeatHeads(t, values, repeats))
	}
	var bias torch.X
	if masked {
		bias = mask
	}
	causal := q.Tensor().Dim(2) > 1 && !masked
	attended := f.Let(t.Attention(query, keys, values, bias, o.dropout, causal, gqa))
	attended.Set(t.Contiguous(t.Transpose(attended, 1, 2)))
	return f.Return(attended), torch.Value{}
}

// groupedEager is eager_attention_forward: the softmax in float32.
func groupedEager(t *torch.Torch, f *torch.Frame, repeats int64, q, keys, values, mask *torch.Var, o groupedOptions) (out, weights torch.Value) {
	if repeats > 1 {
		keys.Set(repeatHeads(t, keys, repeats))
		values.Set(repeatHeads(t, values, repeats))
	}
	scores := f.Let(t.Scale(t.MatMul(q, t.Transpose(keys, 2, 3))))
	if mask.Tensor() != nil {
		scores.Set(t.Add(scores, mask))
	}
	scores.Set(t.To(t.Softmax(scores, torch.Float32), q.Tensor().DType))
	scores.Set(t.Dropout(scores, o.dropout, true))
	attended := f.Let(t.MatMul(scores, values))
	attended.Set(t.Contiguous(t.Transpose(attended, 1, 2)))
	weights = f.Keep(scores)
	return f.Return(attended), weights
}

// repeatHeads is repeat_kv: x[:, :, None, :, :], expanded.
func repeatHeads(t *torch.Torch, x *torch.Var, n int64) torch.Value {
	f := t.Enter()
	b, h, s, d := x.Tensor().Dim(0), x.Tensor().Dim(1), x.Tensor().Dim(2), x.Tensor().Dim(3)
	one := t.Unsqueeze(t.Slice(t.Slice(x, 0, 0, b), 1, 0, h), 2)
	wide := f.Let(t.Expand(t.Slice(t.Slice(one, 3, 0, s), 4, 0, d), b, h, n, s, d))
	return f.Return(t.Reshape(wide, b, h*n, s, d))
}
