package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// This file models weights as bitsandbytes 0.50 stores them, and how
// transformers and PEFT load them.

// Quantization is a format of stored weights.
type Quantization int

// The formats: unquantized; four bits an element with a maximum for each block,
// which itself may be quantized; eight bits with a scale for each row.
const (
	NotQuantized Quantization = iota
	NF4
	NF4Double
	Int8
)

// quantized replaces the weight of a layer. Its tensors are never freed.
type quantized struct {
	kind    Quantization
	out, in int64
	compute DType // of the weight that was quantized, and of what is computed with it
}

// BuildQuantized builds a model on the meta device and loads weights of a type
// into it, as from_pretrained does, and prepares it for training. The owners of
// the parameters give their names, which decide the order of loading.
func (t *Torch) BuildQuantized(build func(), kind Quantization, loaded DType, owners []Owner) {
	meta := t.onMeta(build)
	layers := make(map[*Tensor]*Linear)
	for _, m := range t.linears {
		if t.isQuantized(m) {
			layers[m.Weight] = m
		}
	}
	t.warmUp(layers, kind, loaded)
	for _, p := range t.parameters {
		p.DType = loaded
	}
	t.As(trace.Parameter, func() {
		for _, p := range t.inLoadingOrder(owners) {
			t.fill(p.storage, p.Numel()*loaded.Size())
			if m := layers[p]; m != nil {
				t.quantize(m, kind)
			}
		}
		// Buffers that no checkpoint has (_move_missing_keys_from_meta_to_device,
		// transformers/modeling_utils.py).
		for _, s := range meta.storages {
			if s.id == trace.None && s.refs > 0 {
				t.fill(s, meta.bytes[s])
			}
		}
	})
	t.prepareForTraining()
}

// prepareForTraining is peft.prepare_model_for_kbit_training: half-precision
// parameters are cast to float32, and the cache is emptied (peft/utils/other.py).
func (t *Torch) prepareForTraining() {
	for _, p := range t.parameters {
		if p.DType.IsHalf() {
			t.castData(p, Float32)
		}
	}
	t.EmptyCache()
}

// ToType is model.to(dtype), which does not cast integers.
func (t *Torch) ToType(dtype DType) {
	for _, p := range t.parameters {
		if p.DType.IsFloat() {
			t.castData(p, dtype)
		}
	}
}

// warmUp is caching_allocator_warmup (transformers/modeling_utils.py): one
// allocation as large as the model, so that memory is requested from the device
// once.
func (t *Torch) warmUp(layers map[*Tensor]*Linear, kind Quantization, loaded DType) {
	total := int64(0)
	shared := t.tensorParallelPlan()
	for _, p := range t.parameters {
		bytes := p.Numel() * loaded.Size()
		switch {
		case layers[p] == nil:
		case kind == Int8:
			bytes = p.Numel()
		default:
			bytes = p.Numel() / 2
		}
		if shared[p] {
			bytes /= t.Ranks
		}
		total += bytes
	}
	t.drop(t.allocate(total))
}

// tensorParallelPlan returns the weights in transformers' tensor-parallel plan. With a
// process group it counts only a rank's part of them, although the whole is loaded
// (get_total_byte_count, transformers/modeling_utils.py; base_model_tp_plan and _tp_plan of
// Llama and the families like it).
func (t *Torch) tensorParallelPlan() map[*Tensor]bool {
	out := make(map[*Tensor]bool)
	if t.Ranks < 2 || !slices.ContainsFunc(t.linears, func(m *Linear) bool { return splits[m.name] == rows }) {
		return out
	}
	for _, m := range t.linears {
		out[m.Weight] = m.output || splits[m.name] != unsplit
	}
	return out
}

// isQuantized reports whether transformers converts a layer: not the output
// embedding, and not one whose weight is the last parameter
// (get_keys_to_not_convert, transformers/quantizers/base.py), and none of a class
// derived from Linear (replace_with_bnb_linear, transformers/integrations/bitsandbytes.py).
func (t *Torch) isQuantized(m *Linear) bool {
	return !m.output && !m.keepFloat32 && !m.derived && m.Weight != t.parameters[len(t.parameters)-1]
}

// blockSize is how many elements share a maximum, and nestedSize how many of
// those maxima share one.
const (
	blockSize  = 64
	nestedSize = 256
)

// quantize stores a weight (quantize_4bit, bitsandbytes/functional.py;
// Int8Params). The original is freed.
func (t *Torch) quantize(m *Linear, kind Quantization) {
	p := m.Weight
	m.quantized = &quantized{kind: kind, out: p.Shape[0], in: p.Shape[1], compute: p.DType}
	if m.conv1D { // a Linear4bit replaces a Conv1D
		m.quantized.out, m.quantized.in = p.Shape[1], p.Shape[0]
	}
	elements, original := p.Numel(), p.storage
	if kind == Int8 {
		t.quantizeRows(m)
		t.drop(original)
		return
	}
	if m.conv1D { // transposed, and made contiguous (Params4bit._quantize, bitsandbytes/nn/modules.py)
		dense := t.allocate(p.bytes())
		defer t.drop(original)
		original = dense
	}
	blocks := divUp(elements, blockSize)
	maxima := t.allocate(blocks * Float32.Size())
	p.DType, p.packed = Uint8, true
	p.storage = t.allocate(p.bytes())
	t.quantizationCode()
	if kind == NF4Double {
		t.allocate(Float32.Size()) // offset
		shifted := t.allocate(blocks * Float32.Size())
		t.quantizationMap()
		t.allocate(divUp(blocks, nestedSize) * Float32.Size())
		t.allocate(blocks)
		t.allocate(mapBytes) // code.to(A.device, copy=True): each weight has its own (quantize_blockwise)
		t.drop(shifted)
		t.drop(maxima)
	}
	t.drop(original)
}

// quantizeRows is Int8Params._quantize: the weight in float16, the largest element
// of each row, and the weight in eight bits (bitsandbytes/nn/modules.py). The
// weight of a Conv1D is transposed and made contiguous first.
func (t *Torch) quantizeRows(m *Linear) {
	p := m.Weight
	var half *storage
	if m.conv1D {
		half = t.allocate(p.bytes())
	}
	if p.DType != Float16 {
		dense := half
		half = t.allocate(p.Numel() * Float16.Size())
		if dense != nil {
			t.drop(dense)
		}
	}
	t.allocate(m.quantized.out * Float32.Size())
	p.storage, p.DType = t.allocate(p.Numel()), Uint8
	if half != nil {
		t.drop(half)
	}
}

// quantizationCode is get_4bit_type: 16 values, divided by their largest magnitude.
func (t *Torch) quantizationCode() {
	code := 16 * Float32.Size()
	t.allocate(code)
	sizes := t.allocate(code)
	largest := t.allocate(Float32.Size())
	t.drop(sizes)
	t.drop(largest)
}

// mapBytes is the size of the 8-bit code: 256 values in float32.
const mapBytes = 256 * 4

// quantizationMap makes the 8-bit code once; others are copies of it.
func (t *Torch) quantizationMap() {
	if !t.mapped8Bit {
		t.mapped8Bit = true
		t.allocate(mapBytes)
	}
}

// linear4Bit is Linear4bit.forward (bitsandbytes/nn/modules.py).
func (t *Torch) linear4Bit(x X, m *Linear) Value {
	f := t.Enter(x)
	in := f.Let(Borrow(read(x)))
	given := in.tensor.DType
	in.Set(t.To(in, m.quantized.compute))
	if m.Bias != nil {
		t.castData(m.Bias, m.quantized.compute)
	}
	return f.Return(t.To(t.matMul4Bit(in, m), given))
}

// matMul4Bit is MatMul4Bit (bitsandbytes/autograd/_functions.py), which saves
// only the weight.
func (t *Torch) matMul4Bit(x *Var, m *Linear) Value {
	q := m.quantized
	t.claim([]*Tensor{m.Weight})
	n := t.record("MatMul4Bit", x.tensor)
	var out *Tensor
	t.NoGrad(func() {
		if out = t.gemm4Bit(x.tensor, q); out != nil {
			return
		}
		// _dequant_linear_fallback (bitsandbytes/backends/cuda/ops.py)
		var maxima, shifted *Tensor
		if q.kind == NF4Double {
			maxima = t.empty(Float32, q.blocks())
			shifted = t.empty(Float32, q.blocks())
		}
		weight := t.empty(q.compute, q.out, q.in)
		out = t.linear(x.tensor, &Linear{Weight: weight, Bias: m.Bias})
		t.release(shifted, maxima, weight)
	})
	if n != nil {
		n.backward = func(g []*Tensor) []*Tensor {
			weight := t.dequantize(q)
			if weight.DType != g[0].DType {
				cast := t.to(weight, g[0].DType)
				t.release(weight)
				weight = cast
			}
			out := t.matmul(g[0], weight)
			t.release(weight)
			return []*Tensor{out}
		}
		n.setOutputs(out)
	}
	return Value{out}
}

// gemm4Bit is bitsandbytes' own kernel, which does not dequantize the whole
// weight: for fewer than eight rows, else nil. bitsandbytes also uses it for
// somewhat more rows, by thresholds for each kind of card
// (_gemm_4bit_use_custom_cuda); here the weight is dequantized then, which
// temporarily needs that much more.
func (t *Torch) gemm4Bit(x *Tensor, q *quantized) *Tensor {
	if x.Numel()/q.in >= 8 || q.in%blockSize != 0 {
		return nil
	}
	in := t.contiguousInput(x)
	out := t.empty(x.DType, append(append([]int64{}, x.Shape[:len(x.Shape)-1]...), q.out)...)
	t.release(in)
	return out
}

// dequantize is dequantize_4bit.
func (t *Torch) dequantize(q *quantized) *Tensor {
	var maxima *Tensor
	if q.kind == NF4Double {
		maxima = t.empty(Float32, q.blocks())
	}
	weight := t.empty(q.compute, q.out, q.in)
	t.release(maxima)
	return weight
}

func (q *quantized) blocks() int64 { return divUp(q.out*q.in, blockSize) }

// quantizedLoraForward is lora.Linear4bit.forward and lora.Linear8bitLt.forward
// (peft/tuners/lora/bnb.py): the first one clones what the layer returns.
func (t *Torch) quantizedLoraForward(x X, m *Linear) Value {
	f, l := t.Enter(x), m.lora
	in := f.Let(Borrow(read(x)))
	result := f.Let(t.base(in, m))
	if m.quantized.kind != Int8 {
		result.Set(Value{t.clone(result.tensor)})
	}
	dtype := result.tensor.DType
	converts := t.autocast == nil
	if converts {
		in.Set(t.To(in, l.a.Weight.DType))
	}
	output := f.Let(t.Scale(t.Linear(t.Linear(t.Dropout(in, l.dropout, l.train), l.a), l.b)))
	if converts {
		output.Set(t.To(output, dtype))
	}
	result.Set(t.Add(result, output))
	return f.Return(result)
}
