package torch

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"memorymark/internal/trace"
)

// attentionCase is a call of scaled_dot_product_attention that was measured.
type attentionCase struct {
	dtype, layout       string
	b, h, kv, sq, sk, d int64
	causal, dropout     int
	mask                string
	grad                int
}

// TestAttention holds attention to what an H200 allocated and freed for it
// (testdata/attention.txt, made by scripts/attention_events.py).
func TestAttention(t *testing.T) {
	f, err := os.Open("testdata/attention.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	compared := 0
	for lines.Scan() {
		head, want, ok := strings.Cut(lines.Text(), " | ")
		if !ok {
			continue
		}
		var c attentionCase
		if _, err := fmt.Sscan(head, &c.dtype, &c.layout, &c.b, &c.h, &c.kv, &c.sq, &c.sk, &c.d,
			&c.causal, &c.dropout, &c.mask, &c.grad); err != nil {
			t.Fatal(err)
		}
		t.Run(strings.ReplaceAll(head, " ", "_"), func(t *testing.T) {
			if got := c.run(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
		compared++
	}
	if err := lines.Err(); err != nil || compared == 0 {
		t.Errorf("%d cases, %v", compared, err)
	}
}

// run calls attention and its backward, and returns what was allocated and
// freed.
func (c *attentionCase) run() string {
	t := New(h200)
	t.threads[0].cublas, t.threads[1].cublas = true, true
	var kept []*Tensor
	// input is a tensor whose gradient is caught, as torch.autograd.grad does.
	input := func(x *Tensor) *Tensor {
		n := &node{name: "Capture"}
		n.backward = func(g []*Tensor) []*Tensor {
			kept = append(kept, t.retain(g[0]))
			return nil
		}
		n.setOutputs(x)
		return x
	}
	q, k, v := c.tensors(t)
	input(q)
	input(k)
	input(v)
	var mask X
	if m := c.maskTensor(t); m != nil {
		mask = Borrow(m)
		if c.mask == "floatgrad" {
			input(m)
		}
	}
	t.noGrad = c.grad == 0
	from := len(t.trace.Events)
	out := t.Attention(Borrow(q), Borrow(k), Borrow(v), mask, 0.1*float64(c.dropout), c.causal == 1, c.kv != c.h)
	text := events(t.trace, from)
	if c.grad == 1 {
		g := t.heads(c.b, c.h, c.sq, c.d, q.DType)
		from = len(t.trace.Events)
		t.runGraph(out.tensor.fn, out.tensor.output, g)
		text += " | " + events(t.trace, from)
	}
	return text
}

func (c *attentionCase) dtypeOf() DType {
	return map[string]DType{"fp32": Float32, "bf16": BFloat16, "fp16": Float16}[c.dtype]
}

func (c *attentionCase) tensors(t *Torch) (q, k, v *Tensor) {
	dtype := c.dtypeOf()
	if c.layout == "bshd" {
		return t.heads(c.b, c.h, c.sq, c.d, dtype), t.heads(c.b, c.kv, c.sk, c.d, dtype), t.heads(c.b, c.kv, c.sk, c.d, dtype)
	}
	k, v = t.empty(dtype, c.b, c.kv, c.sk, c.d), t.empty(dtype, c.b, c.kv, c.sk, c.d)
	if c.layout == "bhsd" {
		return t.empty(dtype, c.b, c.h, c.sq, c.d), k, v
	}
	row := 3 * c.h * c.d
	joined := t.empty(dtype, c.b, c.sq, row)
	return t.alias(joined, []int64{c.b, c.h, c.sq, c.d}, []int64{c.sq * row, c.d, row, 1}), k, v
}

func (c *attentionCase) maskTensor(t *Torch) *Tensor {
	switch c.mask {
	case "none":
		return nil
	case "bool":
		return t.empty(Bool, c.b, 1, c.sq, c.sk)
	case "boolrow":
		row := t.empty(Bool, c.b, 1, 1, c.sk)
		return t.alias(row, []int64{c.b, 1, c.sq, c.sk}, []int64{c.sk, c.sk, 0, 1})
	default:
		return t.empty(c.dtypeOf(), c.b, 1, c.sq, c.sk)
	}
}

// events writes what a trace has from an event on.
func events(tr *trace.Trace, from int) string {
	sizes := map[trace.ID]int64{}
	var out []string
	for i, e := range tr.Events {
		switch e.Action {
		case trace.Alloc:
			sizes[e.ID] = e.Size
			if i >= from {
				out = append(out, fmt.Sprintf("+%d", e.Size))
			}
		case trace.FreeCompleted:
			if i >= from {
				out = append(out, fmt.Sprintf("-%d", sizes[e.ID]))
			}
		}
	}
	return strings.Join(out, " ")
}

// TestAttentionChoice says which kernel attention picks on cards that nothing
// was measured on (sdp_utils.cpp).
func TestAttentionChoice(t *testing.T) {
	a100, l4 := Device{SMs: 108, Major: 8}, Device{SMs: 58, Major: 8, Minor: 9}
	t4, b200, rtx5090 := Device{SMs: 40, Major: 7, Minor: 5}, Device{SMs: 148, Major: 10}, Device{SMs: 170, Major: 12}
	for _, c := range []struct {
		name         string
		card         Device
		dtype        DType
		size, groups int64
		masked       bool
		node         string
	}{
		{"A100 bf16", a100, BFloat16, 64, 1, false, "ScaledDotProductFlashAttention"},
		{"A100 bf16 grouped", a100, BFloat16, 64, 4, false, "ScaledDotProductFlashAttention"},
		{"A100 bf16 masked", a100, BFloat16, 64, 1, true, "ScaledDotProductEfficientAttention"},
		{"A100 fp32", a100, Float32, 64, 1, false, "ScaledDotProductEfficientAttention"},
		{"A100 fp32 grouped", a100, Float32, 64, 4, false, "UnsafeView"},
		{"L4 bf16 size 256", l4, BFloat16, 256, 1, false, "ScaledDotProductFlashAttention"},
		{"L4 bf16 size 200", l4, BFloat16, 200, 1, false, "ScaledDotProductEfficientAttention"},
		{"T4 fp16", t4, Float16, 64, 1, false, "ScaledDotProductEfficientAttention"},
		{"T4 bf16", t4, BFloat16, 64, 1, false, "ToCopy"},
		{"B200 bf16", b200, BFloat16, 128, 1, false, "ScaledDotProductCudnnAttention"},
		{"B200 bf16 size 256", b200, BFloat16, 256, 1, false, "ScaledDotProductFlashAttention"},
		{"RTX 5090 bf16", rtx5090, BFloat16, 128, 1, false, "ScaledDotProductFlashAttention"},
	} {
		torch := New(c.card)
		q := torch.heads(2, 8, 32, c.size, c.dtype)
		k := torch.heads(2, 8/c.groups, 32, c.size, c.dtype)
		v := torch.heads(2, 8/c.groups, 32, c.size, c.dtype)
		q.requiresGrad, k.requiresGrad, v.requiresGrad = true, true, true
		var mask X
		if c.masked {
			mask = Borrow(torch.empty(Bool, 2, 1, 32, 32))
		}
		out := torch.Attention(Borrow(q), Borrow(k), Borrow(v), mask, 0, false, c.groups > 1)
		if got := out.tensor.fn.name; got != c.node {
			t.Errorf("%s: %s, want %s", c.name, got, c.node)
		}
	}
}

// TestEfficientKernels are those of efficient attention's backward that PyTorch 2.11
// took on cards that were emulated, by the size of a head (kernels/cutlassB.h). A
// workspace is as large as its blocks.
func TestEfficientKernels(t *testing.T) {
	small, large, staged := efficientBlocks{64, 64, false}, efficientBlocks{128, 128, false}, efficientBlocks{128, 64, true}
	t4, a100 := Device{SMs: 40, Major: 7, Minor: 5}, Device{SMs: 108, Major: 8}
	rtx3060, rtx5090 := Device{SMs: 28, Major: 8, Minor: 6}, Device{SMs: 170, Major: 12}
	for _, c := range []struct {
		name  string
		card  Device
		dtype DType
		size  int64
		want  efficientBlocks
	}{
		{"A100 bf16", a100, BFloat16, 128, large},
		{"A100 bf16 size 256", a100, BFloat16, 256, staged},
		{"RTX 3060 bf16", rtx3060, BFloat16, 128, efficientBlocks{64, 64, true}},
		{"RTX 3060 bf16 size 160", rtx3060, BFloat16, 160, staged},
		{"RTX 3060 fp16 size 256", rtx3060, Float16, 256, staged},
		{"RTX 3060 fp32 size 256", rtx3060, Float32, 256, small},
		{"RTX 5090 bf16 size 256", rtx5090, BFloat16, 256, staged},
		{"T4 fp16", t4, Float16, 128, efficientBlocks{128, 64, false}},
		{"T4 fp16 size 256", t4, Float16, 256, staged},
		{"T4 fp32", t4, Float32, 128, small},
	} {
		torch := New(c.card)
		x := torch.heads(2, 8, 32, c.size, c.dtype)
		if got := torch.efficientKernel(&attention{q: x, k: x, v: x}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestBlackwellWorkspaces are what cuDNN 9.19 plans for a B200 that is only
// described, forward and backward; for an H200 its plans are what was measured.
func TestBlackwellWorkspaces(t *testing.T) {
	for _, c := range []struct {
		b, h, shared, s, sk, size int64
		dropout                   float64
		forward, backward         int64
	}{
		{2, 4, 4, 8, 8, 64, 0, 0, 33152},
		{2, 4, 4, 8, 8, 64, 0.1, 16512, 33152},
		{4, 6, 6, 128, 1500, 64, 0, 0, 1585280},
		{4, 12, 12, 128, 128, 64, 0.1, 98432, 1695872},
		{2, 4, 4, 129, 129, 64, 0, 0, 268320},
		{2, 4, 4, 300, 300, 64, 0.1, 147584, 771584},
		{4, 12, 12, 197, 197, 64, 0, 0, 2458560},
		{2, 8, 2, 512, 512, 128, 0, 0, 8421504},
		{2, 16, 4, 33, 47, 128, 0, 0, 1970432},
	} {
		torch := New(Device{SMs: 148, Major: 10})
		a := &attention{q: torch.heads(c.b, c.h, c.s, c.size, BFloat16), k: torch.heads(c.b, c.shared, c.sk, c.size, BFloat16), dropout: c.dropout}
		a.v = a.k
		if f, b := torch.cudnnForwardWorkspace(a), torch.cudnnBackwardWorkspace(a); f != c.forward || b != c.backward {
			t.Errorf("%+v: %d forward, %d backward", c, f, b)
		}
	}
}
