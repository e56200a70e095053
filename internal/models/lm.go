package models

import (
	"errors"
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var lmFamily = Family{
	Type: "lm", read: reads(ReadLM), Module: "memorymark_prober.lm",
	Heads: []Head{takesNoKeywords(head("TransformerLM", SameIDs, newLM))},
}

// LMConfig is the configuration of the plain transformer language model, whose code
// is internal/measure/prober/memorymark_prober/lm.py.
type LMConfig struct {
	VocabSize int64 `json:"vocab_size"`
	Width     int64 `json:"d_model"`
	Inner     int64 `json:"d_ff"`
	Layers    int64 `json:"num_layers"`
	Heads     int64 `json:"num_heads"`
}

// ReadLM reads a configuration of the plain language model.
func ReadLM(c *hfconfig.Config) (*LMConfig, error) {
	l := &LMConfig{VocabSize: 10000, Width: 768, Inner: 3072, Layers: 12, Heads: 12}
	if err := c.Decode(l, "context_length"); err != nil {
		return nil, err
	}
	if l.Width%(2*l.Heads) != 0 { // rotary positions turn pairs
		return nil, fmt.Errorf("config: d_model is %d; num_heads, %d, must divide it into heads of an even size", l.Width, l.Heads)
	}
	return l, nil
}

// lm is the plain transformer language model: token embedding, pre-norm blocks
// of RMSNorm, causal attention with rotary positions and SwiGLU, a last norm and
// an untied head. It stands for TransformerLM of
// internal/measure/prober/memorymark_prober/lm.py, which is what is measured:
// change both. What decides its memory there:
//
//   - No layer has a bias or dropout, and q, k, v, gate and up are five products.
//   - The attention scores are explicit whatever "attention" says; they are
//     divided, masked by torch.where and softmaxed as tensors of their own.
//   - RMSNorm computes in fp32 and casts back before its weight.
//   - Cosines, sines and mask are made again in every forward, without gradients.
//   - Under checkpointing a block is one torch.utils.checkpoint.checkpoint with
//     use_reentrant=False.
type lm struct {
	cfg    *LMConfig
	run    Run
	embed  *torch.Embedding
	blocks []lmBlock
	norm   *torch.RMSNorm
	head   *torch.Linear
}

type lmBlock struct {
	norm1          *torch.RMSNorm
	q, k, v, o     *torch.Linear
	norm2          *torch.RMSNorm
	gate, up, down *torch.Linear
}

// newLM makes the model, parameters in the order of its constructors.
func newLM(t *torch.Torch, c *LMConfig, r Run) (*Model, error) {
	if r.Mask != NoMask {
		return nil, errors.New("the reference language model takes no attention_mask")
	}
	m := &lm{cfg: c, run: r, embed: t.NewEmbedding(c.VocabSize, c.Width, r.DType).AsInput("embed")}
	linear := func(name string, in, out int64) *torch.Linear {
		return t.NewLinear(in, out, false, r.DType).Named(name)
	}
	norm := func() *torch.RMSNorm { // norm1 and norm2, which Trainer takes for no norms
		n := t.NewRMSNorm(c.Width, r.DType)
		n.Weight.OddDecay()
		return n
	}
	for range c.Layers {
		m.blocks = append(m.blocks, lmBlock{
			norm1: norm(),
			q:     linear("q", c.Width, c.Width), k: linear("k", c.Width, c.Width),
			v: linear("v", c.Width, c.Width), o: linear("o", c.Width, c.Width),
			norm2: norm(),
			gate:  linear("gate", c.Width, c.Inner), up: linear("up", c.Width, c.Inner), down: linear("down", c.Inner, c.Width),
		})
	}
	m.norm = t.NewRMSNorm(c.Width, r.DType)
	m.head = linear("head", c.Width, c.VocabSize)
	return &Model{Forward: m.forward}, nil
}

func (m *lm) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	x := f.Let(t.In("embed", func() torch.Value { return t.Embedding(torch.Borrow(batch.IDs), m.embed) }))
	s := batch.IDs.Dim(1)
	cosines, sines := m.rotary(t, s, x.Tensor().DType)
	cos, sin := f.Let(cosines), f.Let(sines)
	mask := f.Let(t.Compare(t.Full(torch.Bool, s, s)))
	for i := range m.blocks {
		block := func(args []*torch.Var) torch.Value {
			return m.block(t, i, args[0], args[1], args[2], args[3])
		}
		if m.run.Checkpointing {
			x.Set(t.CheckpointInputs(block, x, cos, sin, mask))
		} else {
			x.Set(block([]*torch.Var{x, cos, sin, mask}))
		}
	}
	normed := t.In("norm", func() torch.Value { return rmsNorm(t, x, m.norm) })
	logits := f.Let(t.In("head", func() torch.Value { return t.Linear(normed, m.head) }))
	var loss torch.Value
	if batch.Labels != nil {
		labels := t.View(torch.Borrow(batch.Labels), -1)
		loss = f.Keep(f.Let(t.In("loss", func() torch.Value {
			return t.CrossEntropy(t.View(logits, -1, m.cfg.VocabSize), labels)
		})))
	}
	out := Output{Loss: loss, Logits: f.Keep(logits)}
	f.End()
	return out
}

func (m *lm) rotary(t *torch.Torch, length int64, dtype torch.DType) (cos, sin torch.Value) {
	size := m.cfg.Width / m.cfg.Heads
	t.NoGrad(func() {
		f := t.Enter()
		exponents := t.Floats(t.Full(torch.Float32, size/2))
		frequencies := f.Let(t.Floats(exponents.Borrow()))
		t.Drop(t.Full(torch.Int64)) // the base, a double on the device
		t.Drop(exponents)
		angles := f.Let(t.Floats(t.Unsqueeze(t.Arange(length), 1), frequencies))
		angles.Set(t.Cat(-1, angles, angles))
		cos = t.To(t.Floats(angles), dtype)
		sin = t.To(t.Floats(angles), dtype)
		f.End()
	})
	return cos, sin
}

func lmRotate(t *torch.Torch, input torch.Value, cos, sin *torch.Var) torch.Value {
	f := t.Enter()
	x := f.Let(input)
	n := x.Tensor().Dim(-1)
	x1, x2 := f.Let(t.Slice(x, -1, 0, n/2)), f.Let(t.Slice(x, -1, n/2, n))
	return f.Return(t.Add(t.Mul(x, cos), t.Mul(t.Cat(-1, t.Neg(x2), x1), sin)))
}

func (m *lm) block(t *torch.Torch, i int, input, cos, sin, mask *torch.Var) torch.Value {
	f, b := t.Enter().In("blocks", i), &m.blocks[i]
	x := f.Let(input)
	x.Set(t.Add(x, m.attention(t, b, rmsNorm(t, x, b.norm1), cos, sin, mask)))
	h := f.Let(rmsNorm(t, x, b.norm2))
	return f.Return(t.Add(x, t.Linear(t.Mul(t.SiLU(t.Linear(h, b.gate)), t.Linear(h, b.up)), b.down)))
}

func (m *lm) attention(t *torch.Torch, p *lmBlock, input torch.Value, cos, sin, mask *torch.Var) torch.Value {
	f := t.Enter(input).In("attention")
	x := f.Let(input.Borrow())
	b, s, d := x.Tensor().Dim(0), x.Tensor().Dim(1), m.cfg.Width
	split := func(x torch.Value) torch.Value { return t.Transpose(t.View(x, b, s, m.cfg.Heads, -1), 1, 2) }
	turn := func(x torch.Value) torch.Value { return lmRotate(t, x, cos, sin) }
	q := f.Let(turn(split(t.Linear(x, p.q))))
	k := f.Let(turn(split(t.Linear(x, p.k))))
	v := f.Let(split(t.Linear(x, p.v)))
	scores := f.Let(t.Scale(t.MatMul(q, t.Transpose(k, -2, -1))))
	scores.Set(t.WhereScalar(mask, scores))
	weights := f.Let(t.Softmax(scores, torch.NoDType))
	return f.Return(t.Linear(t.Reshape(t.Transpose(t.MatMul(weights, v), 1, 2), b, s, d), p.o))
}
