package torch

import (
	"fmt"
	"slices"

	"memorymark/internal/trace"
)

// This file is parallelize_module of torch.distributed.tensor.parallel: some
// matrices of a layer are split over ranks, in pairs. Each rank has columns of
// the result of the first ones (ColwiseParallel) and rows of the second matrix
// (RowwiseParallel), and the partial results are summed over ranks: in forward
// after the second, in backward before the first.

// split is how a layer's matrix is split over ranks.
type split int

const (
	unsplit split = iota
	columns       // of the result
	rows          // of the matrix
)

// splits are the layers that are split, by the end of their paths: the plan of
// PyTorch's tutorial for Llama
// (pytorch.org/tutorials/intermediate/TP_tutorial.html).
var splits = map[string]split{
	"self_attn.q_proj": columns, "self_attn.k_proj": columns, "self_attn.v_proj": columns, "self_attn.o_proj": rows,
	"mlp.gate_proj": columns, "mlp.up_proj": columns, "mlp.down_proj": rows,
}

// splitMatrices splits the layers of a model on the meta device: this rank has
// the first part of each.
func (t *Torch) splitMatrices(ranks int64) error {
	of := make(map[string]int) // layers by name
	for _, m := range t.linears {
		if m.split = splits[m.name]; m.split == unsplit {
			continue
		}
		of[m.name]++
		dim := int(m.split) - int(columns) // weights are [out, in]
		if err := m.checkSplit(m.Weight.Shape[dim], ranks); err != nil {
			return err
		}
		t.cut(m.Weight, dim, ranks)
		if m.Bias != nil && m.split == columns {
			t.cut(m.Bias, 0, ranks)
		}
	}
	// Layers that are split by columns must be followed by layers split by
	// rows.
	attention := of["self_attn.q_proj"] == of["self_attn.o_proj"] && of["self_attn.k_proj"] == of["self_attn.o_proj"]
	if len(of) == 0 || !attention || of["mlp.gate_proj"] != of["mlp.down_proj"] {
		return fmt.Errorf("tensor parallelism is modelled for layers with q_proj, k_proj, o_proj, gate_proj and down_proj, like Llama's; %s has others", t.Name)
	}
	return nil
}

// checkSplit reports why PyTorch fails with parts that are uneven. DTensor splits as
// torch.chunk does, but attention views its part as whole heads, and RowwiseParallel
// assumes that all parts of its input are as large as this rank's
// (torch/distributed/tensor/parallel/style.py, DTensor.from_local).
func (m *Linear) checkSplit(size, ranks int64) error {
	part := divUp(size, ranks)
	switch {
	case m.head > 0 && size/m.head%ranks != 0:
		return fmt.Errorf("%s has %d heads, which %d GPUs cannot share: PyTorch fails to view %d columns as heads of %d (\"shape is invalid for input\"); gpus must divide %d",
			m.name, size/m.head, ranks, part, m.head, size/m.head)
	case m.whole:
		return fmt.Errorf("%s has a norm of %d columns behind it, which tp does not split: PyTorch fails to multiply its weight by %d columns (\"size of tensor a must match\")", m.name, size, part)
	case size%ranks != 0:
		return fmt.Errorf("%s has %d rows or columns, which %d GPUs cannot share evenly: PyTorch fails to multiply %d by %d (\"must have same reduction dim\"); gpus must divide %d",
			m.name, size, ranks, part*ranks, size, size)
	}
	return nil
}

// cut keeps a rank's part of a parameter.
func (t *Torch) cut(p *Tensor, dim int, ranks int64) {
	p.Shape = slices.Clone(p.Shape)
	p.Shape[dim] /= ranks
	p.stride = contiguousStrides(p.Shape)
	t.meta.bytes[p.storage] = p.Numel() * p.DType.Size()
	p.split = true
}

// SplitMatrices builds a model on the meta device, splits it, and allocates
// this rank's part.
func (t *Torch) SplitMatrices(ranks int64, owners []Owner, build func()) error {
	var err error
	meta := t.onMeta(func() {
		build()
		for i, p := range t.parameters {
			t.setOwner(p, owners[i])
			t.wholes += p.Numel()
		}
		err = t.splitMatrices(ranks)
	})
	if err != nil {
		return err
	}
	parameters := make(map[*storage]*Tensor)
	for _, p := range t.parameters {
		parameters[p.storage] = p
	}
	t.As(trace.Parameter, func() {
		met := false // a DTensor
		for _, s := range meta.storages {
			p := parameters[s]
			if p != nil && p.split && !met {
				met = true
				t.fakeContext()
			}
			if s.id != trace.None {
				t.untie(p)
				continue
			}
			t.fill(s, meta.bytes[s])
		}
	})
	t.parallel = tensorParallel{}
	return nil
}

// untie gives the output layer its own weight: to_empty makes a new parameter
// for each module, so they are no longer tied.
func (t *Torch) untie(p *Tensor) {
	for _, m := range t.linears {
		if m.output && m.Weight == p {
			m.Weight = t.parameter(p.DType, p.Shape...)
			t.wholes += p.Numel()
		}
	}
}

// sharedInput is the input of a layer split by columns: its gradient is partial,
// and summed over ranks into a new tensor (_functional_collectives all_reduce).
func (t *Torch) sharedInput(x *Tensor) *Tensor {
	return t.makeView("Redistribute", x, x.Shape, x.stride, func(g *Tensor) *Tensor {
		t.countTraffic(&t.work.Traffic.TensorSummed, g.bytes())
		return t.emptyLike(g, g.DType)
	})
}

// summedOutput is the output of a layer split by rows: the sum over ranks of
// the partial results.
func (t *Torch) summedOutput(x *Tensor) *Tensor {
	out := t.emptyLike(x, x.DType)
	t.countTraffic(&t.work.Traffic.TensorSummed, out.bytes())
	if n := t.record("Redistribute", x); n != nil {
		n.gradient = func(g *Tensor) *Tensor { return t.retain(g) }
		n.setOutputs(out)
	}
	return out
}

// tensorParallel has no hooks around modules: its layers do everything.
type tensorParallel struct{}

func (tensorParallel) preForward(*module)              {}
func (tensorParallel) postForward(*module, ...*Tensor) {}
func (tensorParallel) beforeNode(*node)                {}
func (tensorParallel) postAccumulate(*Tensor)          {}
func (tensorParallel) keepGradients(bool)              {}
