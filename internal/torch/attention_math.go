package torch

// mathAttention is _scaled_dot_product_attention_math.
func (t *Torch) mathAttention(a *attention) *Tensor {
	panic("torch: attention by composed operators is not written yet")
}
