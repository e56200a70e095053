package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

// debertaFamily is DeBERTa-v2 and v3, which differ in their configurations.
var debertaFamily = Family{Type: "deberta-v2", Versions: []Versions{last4, older4}, read: reads(readDeberta), Heads: []Head{
	head("DebertaV2ForSequenceClassification", Classes, newDeberta),
	head("DebertaV2ForTokenClassification", TokenTags, newDebertaTokens),
	head("DebertaV2ForQuestionAnswering", Spans, newDebertaSpans),
	head("DebertaV2ForMaskedLM", SameIDs, newDebertaMaskedLM),
	head("DebertaV2Model", NoLabels, newDebertaAlone),
}}

// debertaConfig is transformers' DebertaV2Config.
type debertaConfig struct {
	VocabSize         int64          `json:"vocab_size"`
	HiddenSize        int64          `json:"hidden_size"`
	Layers            int64          `json:"num_hidden_layers"`
	Heads             int64          `json:"num_attention_heads"`
	IntermediateSize  int64          `json:"intermediate_size"`
	HiddenAct         string         `json:"hidden_act"`
	HiddenDropout     float64        `json:"hidden_dropout_prob"`
	AttentionDropout  float64        `json:"attention_probs_dropout_prob"`
	MaxPositions      int64          `json:"max_position_embeddings"`
	TypeVocabSize     int64          `json:"type_vocab_size"`
	Relative          bool           `json:"relative_attention"`
	MaxRelative       orNone         `json:"max_relative_positions"` // below 1: max_position_embeddings
	Buckets           orNone         `json:"position_buckets"`       // below 1: a distance is its own bucket
	NormRelative      string         `json:"norm_rel_ebd"`
	ShareKey          bool           `json:"share_att_key"`
	Kinds             attentionKinds `json:"pos_att_type"`
	PositionedInput   bool           `json:"position_biased_input"`
	PoolerDropout     float64        `json:"pooler_dropout"`
	PoolerAct         string         `json:"pooler_hidden_act"`
	PoolerSize        *int64         `json:"pooler_hidden_size"` // nil: hidden_size
	ClassifierDropout *float64       `json:"cls_dropout"`        // nil: hidden_dropout_prob
	PadToken          *orNone        `json:"pad_token_id"`
	NumLabels         int64          `json:"num_labels"`
	TieWordEmbeddings bool           `json:"tie_word_embeddings"`
	Legacy            bool           `json:"legacy"`
	ConvKernel        orNone         `json:"conv_kernel_size"`
}

// orNone is a number that may be below 1, which says that there is none.
type orNone int64

// attentionKinds are what attends by position: c2p for content to position, p2c
// for the other way. A configuration has a list, or "p2c|c2p".
type attentionKinds []string

// UnmarshalJSON reads both forms.
func (k *attentionKinds) UnmarshalJSON(data []byte) error {
	var joined string
	if json.Unmarshal(data, &joined) != nil {
		return json.Unmarshal(data, (*[]string)(k))
	}
	*k = nil
	for part := range strings.SplitSeq(strings.ToLower(joined), "|") {
		*k = append(*k, strings.TrimSpace(part))
	}
	return nil
}

// readDeberta reads a configuration.
func readDeberta(c *hfconfig.Config) (*debertaConfig, error) {
	pad := orNone(0)
	d := &debertaConfig{
		VocabSize: 128100, HiddenSize: 1536, Layers: 24, Heads: 24, IntermediateSize: 6144, HiddenAct: "gelu", HiddenDropout: 0.1,
		AttentionDropout: 0.1, MaxPositions: 512, MaxRelative: -1, Buckets: -1, NormRelative: "none", PositionedInput: true,
		PoolerAct: "gelu", PadToken: &pad, NumLabels: 2, TieWordEmbeddings: true, Legacy: true,
	}
	if err := c.Decode(d, "layer_norm_eps", "conv_act", "conv_groups", "gradient_checkpointing"); err != nil {
		return nil, err
	}
	if d.MaxRelative < 1 {
		d.MaxRelative = orNone(d.MaxPositions)
	}
	return d, d.validate()
}

func (c *debertaConfig) validate() error {
	if c.ConvKernel > 0 || !c.Legacy {
		return errors.New("config: a deberta-v2 with a convolution (conv_kernel_size), or without its legacy head, is not modelled")
	}
	if c.PoolerSize != nil && *c.PoolerSize != c.HiddenSize {
		return errors.New("config: a pooler_hidden_size other than hidden_size is not modelled")
	}
	if err := invalid.Within("position_buckets or max_relative_positions", c.span(), 1, 1<<20); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	_, err := activationOf(c.PoolerAct)
	return errors.Join(err, checkEncoder(c.NumLabels, 0, c.HiddenDropout, c.AttentionDropout, c.PoolerDropout))
}

// positions are those that there are embeddings for.
func (c *debertaConfig) positions() (most int64, key string) {
	return c.MaxPositions, "max_position_embeddings"
}

// span is how many distances there are to each side.
func (c *debertaConfig) span() int64 {
	if c.Buckets > 0 {
		return int64(c.Buckets)
	}
	return int64(c.MaxRelative)
}

// attends reports whether scores have a part by position.
func (c *debertaConfig) attends(kind string) bool { return slices.Contains(c.Kinds, kind) }

// deberta is DebertaV2Model
// (transformers/models/deberta_v2/modeling_deberta_v2.py).
type deberta struct {
	cfg                       *debertaConfig
	run                       Run
	checkpoint                bool
	act                       activation
	name                      string           // what the head calls the model
	word, position, tokenType *torch.Embedding // the last two may be nil
	positionIDs               *torch.Tensor
	norm                      *torch.LayerNorm
	layers                    []debertaLayer
	relative                  *torch.Embedding // nil without relative_attention
	relativeNorm              *torch.LayerNorm // nil without
}

type debertaLayer struct {
	query, key, value, positionKey, positionQuery *torch.Linear
	attentionOutput                               *torch.Linear
	attentionNorm                                 *torch.LayerNorm
	intermediate, output                          *torch.Linear
	outputNorm                                    *torch.LayerNorm
}

// newDebertaModel makes the model, parameters in the order of its constructors.
func newDebertaModel(t *torch.Torch, c *debertaConfig, r Run) (*deberta, error) {
	act, err := activationOf(c.HiddenAct)
	if err != nil {
		return nil, err
	}
	if r.Quantize != torch.NotQuantized && r.Autocast {
		// Scores, which are products and in half precision, are filled with the least number of
		// the queries' type, which is float32 (DisentangledSelfAttention.forward, modeling_deberta_v2.py).
		return nil, errors.New("a DeBERTa with quantized weights fails under autocast: a number of float32 does not fit its scores; set precision to bf16")
	}
	d := r.DType
	m := &deberta{cfg: c, run: r, checkpoint: r.Checkpointing && r.Train, act: act, name: "deberta"}
	m.word = t.NewEmbedding(c.VocabSize, c.HiddenSize, d).AsInput("word_embeddings")
	if c.PositionedInput {
		m.position = t.NewEmbedding(c.MaxPositions, c.HiddenSize, d)
	}
	if c.TypeVocabSize > 0 {
		m.tokenType = t.NewEmbedding(c.TypeVocabSize, c.HiddenSize, d)
	}
	m.norm = t.NewLayerNorm(c.HiddenSize, d)
	m.positionIDs = t.Buffer(torch.Int64, 1, c.MaxPositions)
	for range c.Layers {
		m.layers = append(m.layers, newDebertaLayer(t, c, d))
	}
	if c.Relative {
		m.relative = t.NewEmbedding(2*c.span(), c.HiddenSize, d)
	}
	if strings.Contains(c.NormRelative, "layer_norm") {
		m.relativeNorm = t.NewLayerNorm(c.HiddenSize, d)
	}
	r.Versions.initPositions(t, c.MaxPositions)
	return m, nil
}

func newDebertaLayer(t *torch.Torch, c *debertaConfig, d torch.DType) (l debertaLayer) {
	linear := func(name string, in, out int64) *torch.Linear { return t.NewLinear(in, out, true, d).Named(name) }
	attention := func(part string) *torch.Linear {
		return linear("attention.self."+part, c.HiddenSize, c.HiddenSize)
	}
	l.query, l.key, l.value = attention("query_proj"), attention("key_proj"), attention("value_proj")
	if c.Relative && !c.ShareKey {
		if c.attends("c2p") {
			l.positionKey = attention("pos_key_proj")
		}
		if c.attends("p2c") {
			l.positionQuery = attention("pos_query_proj")
		}
	}
	l.attentionOutput = linear("attention.output.dense", c.HiddenSize, c.HiddenSize)
	l.attentionNorm = t.NewLayerNorm(c.HiddenSize, d)
	l.intermediate = linear("intermediate.dense", c.HiddenSize, c.IntermediateSize)
	l.output = linear("output.dense", c.IntermediateSize, c.HiddenSize)
	l.outputNorm = t.NewLayerNorm(c.HiddenSize, d)
	return l
}

// forward is DebertaV2Model.forward.
func (m *deberta) forward(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	b, s := batch.IDs.Dim(0), batch.IDs.Dim(1)
	mask := f.Let(torch.Value{})
	if batch.Mask != nil {
		mask.Set(torch.Borrow(batch.Mask))
	} else {
		m.lookForPadding(t, b)
		mask.Set(t.Full(torch.Float32, b, s))
	}
	types := f.Let(t.Full(torch.Int64, b, s))
	embedded := f.Let(m.embed(t, batch.IDs, types, mask))
	states := m.encode(t, embedded, mask)
	last := states[len(states)-1]
	hidden := t.Hold(last.Borrow())
	f.End()
	for _, state := range slices.Backward(states) { // a tuple drops its last element first
		t.Drop(state)
	}
	return trunkOutput{hidden: hidden}
}

// lookForPadding is warn_if_padding_and_no_attention_mask
// (transformers/modeling_utils.py): pad_token_id in input_ids[:, [-1, 0]].
func (m *deberta) lookForPadding(t *torch.Torch, batch int64) {
	if m.cfg.PadToken == nil {
		return
	}
	columns := t.Full(torch.Int64, 2)
	ends := t.Full(torch.Int64, batch, 2)
	t.Drop(columns)
	t.Drop(t.All(t.Compare(ends.Borrow())))
	t.Drop(ends)
}

// embed is DebertaV2Embeddings.forward. Positions that are not embedded are zeros
// all the same, and masked tokens are multiplied away.
func (m *deberta) embed(t *torch.Torch, ids *torch.Tensor, types, given *torch.Var) torch.Value {
	f := t.Enter().In("embeddings")
	mask := f.Let(given)
	inputs := f.Let(t.In("word_embeddings", func() torch.Value { return t.Embedding(torch.Borrow(ids), m.word) }))
	positioned := f.Let(torch.Value{})
	if m.position != nil {
		positioned.Set(t.Embedding(t.Slice(torch.Borrow(m.positionIDs), 1, 0, ids.Dim(1)), m.position))
	} else {
		positioned.Set(t.FullLike(inputs))
	}
	sum := f.Let(inputs)
	if m.position != nil {
		sum.Set(t.Add(sum, positioned))
	}
	typed := f.Let(torch.Value{})
	if m.tokenType != nil {
		typed.Set(t.Embedding(types, m.tokenType))
		sum.Set(t.Add(sum, typed))
	}
	sum.Set(t.LayerNorm(sum, m.norm))
	mask.Set(t.Unsqueeze(mask, 2))
	mask.Set(t.To(mask, sum.Tensor().DType))
	sum.Set(t.Mul(sum, mask))
	sum.Set(t.Dropout(sum, m.cfg.HiddenDropout, m.run.Train))
	return f.Return(sum)
}

// encode is DebertaV2Encoder.forward, which returns the hidden states of all
// layers, the embeddings first.
func (m *deberta) encode(t *torch.Torch, embedded, given *torch.Var) []torch.Value {
	f := t.Enter().In("encoder")
	mask := f.Let(t.Mul(t.Unsqueeze(t.Unsqueeze(given, 1), 2), t.Unsqueeze(t.Unsqueeze(given, 1), 3)))
	distances, relative := f.Let(torch.Value{}), f.Let(torch.Value{})
	if m.relative != nil {
		distances.Set(m.distances(t, embedded.Tensor().Dim(1)))
		relative.Set(torch.Borrow(m.relative.Weight))
		if m.relativeNorm != nil {
			relative.Set(t.LayerNorm(relative, m.relativeNorm))
		}
	}
	states := []torch.Value{t.Hold(embedded)}
	hidden := f.Let(embedded)
	for i := range m.layers {
		g, l := t.Enter().In("layer", i), &m.layers[i]
		if m.checkpoint {
			hidden.Set(g.Return(m.checkpointed(t, l, hidden, mask, distances, relative)))
		} else {
			hidden.Set(g.Return(m.layer(t, l, hidden, mask, distances, relative)))
		}
		states = append(states, t.Hold(hidden))
	}
	f.End()
	return states
}

// checkpointed is a layer's call under checkpointing. The distances and their embeddings
// are bound by keywords, which die first; in transformers 4.51 no argument is.
func (m *deberta) checkpointed(t *torch.Torch, l *debertaLayer, hidden, mask, distances, relative *torch.Var) torch.Value {
	if m.run.Versions.Transformers.Before(4, 57) {
		layer := func(in []*torch.Var) torch.Value { return m.layer(t, l, in[0], in[1], in[2], in[3]) }
		return t.CheckpointInputs(layer, hidden, mask, distances, relative)
	}
	layer := func(in []*torch.Var) torch.Value { return m.layer(t, l, in[2], in[3], in[0], in[1]) }
	return t.CheckpointInputs(layer, distances, relative, hidden, mask)
}
