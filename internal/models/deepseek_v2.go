package models

import (
	"errors"
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var deepseekV2Family = Family{Type: "deepseek_v2", Experts: true, read: reads(readDeepseekV2), Heads: decoderHeads("DeepseekV2", newDeepseekV2, causalHead, classesHead, noHead)}

// deepseekV2Config is transformers' DeepseekV2Config.
type deepseekV2Config struct {
	llamaConfig
	Dense     int64  `json:"first_k_dense_replace"` // layers with an MLP, the first ones
	Latent    int64  `json:"kv_lora_rank"`
	Queries   *int64 `json:"q_lora_rank"` // nil: queries are projected at once
	Plain     int64  `json:"qk_nope_head_dim"`
	Rotated   int64  `json:"qk_rope_head_dim"`
	ValueSize int64  `json:"v_head_dim"`
	Experts   int64  `json:"n_routed_experts"`
	Shared    int64  `json:"n_shared_experts"`
	Chosen    *int64 `json:"num_experts_per_tok"`
	Inner     int64  `json:"moe_intermediate_size"`
	Method    string `json:"topk_method"`
	Groups    *int64 `json:"n_group"`
	TopGroups *int64 `json:"topk_group"`
}

// How experts are chosen: topk_method.
const (
	greedy       = "greedy"
	groupLimited = "group_limited_greedy"
)

// deepseekIgnored are keys of the original code that transformers does not read, or
// numbers in formulas.
var deepseekIgnored = []string{
	"aux_loss_alpha", "ep_size", "moe_layer_freq", "norm_topk_prob", "num_nextn_predict_layers", "routed_scaling_factor", "scoring_func", "seq_aux",
}

func (l *deepseekV2Config) kindOf(layer int64) any { return layer < l.Dense }

// readDeepseekV2 reads a configuration, and completes it as __post_init__ does.
func readDeepseekV2(c *hfconfig.Config) (*deepseekV2Config, error) {
	queries := int64(1536)
	l := &deepseekV2Config{llamaConfig: llamaConfig{
		VocabSize: 102400, HiddenSize: 4096, IntermediateSize: 11008, Layers: 32, Heads: 32, MaxPositions: 2048,
		HiddenAct: "silu", UseCache: true, NumLabels: 2,
	}, Latent: 512, Queries: &queries, Experts: 64, Shared: 2, Plain: 128, Rotated: 64, ValueSize: 128, Method: greedy, Inner: 1407}
	if err := l.decodeIgnoring(c, l, deepseekIgnored, "silu"); err != nil {
		return nil, err
	}
	l.HeadDim, l.SlidingWindow, l.LayerTypes = &l.Rotated, nil, nil
	return l, errors.Join(rotates(l.Rotated), l.checkRouter())
}

func (l *deepseekV2Config) checkRouter() error {
	switch {
	case l.KeyValueHeads != nil && *l.KeyValueHeads != l.Heads:
		return invalid.At("num_key_value_heads", fmt.Errorf("config: num_key_value_heads is %d; a DeepSeek-V2 has as many as num_attention_heads, %d", *l.KeyValueHeads, l.Heads))
	case l.Dense >= l.Layers:
		return nil
	case l.Chosen == nil:
		return invalid.At("num_experts_per_tok", errors.New("config: a DeepSeek-V2 needs num_experts_per_tok"))
	case l.Method != greedy && l.Method != groupLimited:
		return invalid.At("topk_method", fmt.Errorf("config: topk_method is %q; it must be %s or %s", l.Method, greedy, groupLimited))
	case l.Method == groupLimited && (l.Groups == nil || l.TopGroups == nil || l.Experts%*l.Groups != 0 || *l.TopGroups > *l.Groups):
		return invalid.At("n_group", fmt.Errorf("config: %s needs an n_group that divides n_routed_experts, and a topk_group of at most that", groupLimited))
	}
	return checkExperts(l.HiddenSize, l.Inner, "moe_intermediate_size", l.Experts, *l.Chosen, "num_experts_per_tok")
}

// deepseekV2 is DeepseekV2Model: Llama whose keys and values come from a small
// latent, and whose layers after the first have experts, some of which all tokens share
// (transformers/models/deepseek_v2/modeling_deepseek_v2.py).
type deepseekV2 struct {
	*llama
	cfg       *deepseekV2Config
	attention []latentAttention
	blocks    []deepseekBlock
}

// deepseekBlock is DeepseekV2Moe, empty in a layer with an MLP. The shared experts are
// the layer's gate, up and down.
type deepseekBlock struct {
	experts *experts
	gate    *torch.Stack
}

// newDeepseekV2 makes the model, parameters in the order of its constructors.
func newDeepseekV2(t *torch.Torch, c *deepseekV2Config, r Run) *llama {
	m := deepseekV2{llama: newLlamaModel(&c.llamaConfig, r), cfg: c, attention: make([]latentAttention, c.Layers), blocks: make([]deepseekBlock, c.Layers)}
	m.embed = t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("embed_tokens")
	for i := range c.Layers {
		var l llamaLayer
		m.attention[i] = newLatentAttention(t, c, r)
		if i < c.Dense {
			l.gated(t, &c.llamaConfig, r)
		} else {
			m.blocks[i].experts = newExperts(t, c.Experts, c.HiddenSize, c.Inner, &c.llamaConfig, r)
			m.blocks[i].gate = newGate(t, c.Experts, c.HiddenSize, r)
			l.shared(t, c, r)
		}
		l.inputNorm, l.attentionNorm = t.NewRMSNorm(c.HiddenSize, r.DType), t.NewRMSNorm(c.HiddenSize, r.DType)
		m.layers = append(m.layers, l)
	}
	m.attend, m.feed = m.latent, m.mlp
	m.finish(t)
	m.rotaries[0].complex = true
	return m.llama
}

// shared makes the experts that all tokens share, one MLP.
func (l *llamaLayer) shared(t *torch.Torch, c *deepseekV2Config, r Run) {
	inner := c.Inner * c.Shared
	l.gate = t.NewLinear(c.HiddenSize, inner, c.MLPBias, r.DType).Named("mlp.shared_experts.gate_proj")
	l.up = t.NewLinear(c.HiddenSize, inner, c.MLPBias, r.DType).Named("mlp.shared_experts.up_proj")
	l.down = t.NewLinear(inner, c.HiddenSize, c.MLPBias, r.DType).Named("mlp.shared_experts.down_proj")
}

// mlp is DeepseekV2Moe.forward, or DeepseekV2MLP's.
func (m deepseekV2) mlp(t *torch.Torch, i int, x *torch.Var) torch.Value {
	block := m.blocks[i]
	if block.experts == nil {
		return m.llamaMLP(t, i, x)
	}
	f := t.Enter()
	shape := x.Tensor().Shape
	hidden, residuals := f.Let(x), f.Let(x)
	r := m.route(t, block.gate, hidden)
	f.Let(r.logits)
	weights, index := f.Let(r.weights), f.Let(r.index)
	hidden.Set(t.View(hidden, -1, m.cfg.HiddenSize))
	hidden.Set(t.View(block.experts.forward(t, hidden, index, weights), shape...))
	hidden.Set(t.Add(hidden, t.In("shared_experts", func() torch.Value { return m.llamaMLP(t, i, residuals) })))
	return f.Return(hidden)
}

// route is DeepseekV2TopkRouter.forward, in float32.
func (m deepseekV2) route(t *torch.Torch, stack *torch.Stack, x *torch.Var) routed {
	gate := t.Activate(stack)
	defer gate.Leave()
	f := t.Enter().In("gate")
	hidden := f.Let(t.View(x, -1, m.cfg.HiddenSize))
	logits := f.Let(t.LinearOf(t.To(hidden, torch.Float32), t.To(gate.Weight(), torch.Float32)))
	scores := f.Let(t.Softmax(logits, torch.Float32))
	weights, index := f.Let(torch.Value{}), f.Let(torch.Value{})
	if m.cfg.Method == groupLimited {
		m.limit(t, f, scores)
	}
	top, places := t.TopK(scores, *m.cfg.Chosen)
	weights.Set(top)
	index.Set(places)
	weights.Set(t.Scale(weights))
	out := routed{f.Keep(logits), f.Keep(weights), f.Keep(index)}
	f.End()
	return out
}

// limit is group_limited_greedy: only experts of the best groups are left.
func (m deepseekV2) limit(t *torch.Torch, f *torch.Frame, scores *torch.Var) {
	groups, each := *m.cfg.Groups, m.cfg.Experts / *m.cfg.Groups
	best, places := t.MaxLast(t.View(scores, -1, groups, each), false)
	t.Drop(places)
	group := f.Let(best)
	top, index := t.TopK(group, *m.cfg.TopGroups)
	f.Let(index)
	t.Drop(top)
	chosen := f.Let(t.FullLike(group)) // scatter_
	wide := t.Expand(t.Unsqueeze(chosen, 2), chosen.Tensor().Dim(0), groups, each)
	mask := f.Let(t.Reshape(wide, -1, m.cfg.Experts))
	scores.Set(t.MaskedFill(scores, t.Compare(t.Compare(mask)))) // ~mask.bool()
}
