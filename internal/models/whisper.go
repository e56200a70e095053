package models

import (
	"errors"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var whisperFamily = Family{Type: "whisper", read: reads(readWhisper), Heads: []Head{
	decodes(head("WhisperForConditionalGeneration", TargetIDs, newWhisper)),
}}

// whisperConfig is transformers' WhisperConfig.
type whisperConfig struct {
	seq2seqConfig
	VocabSize       int64 `json:"vocab_size"`
	Bins            int64 `json:"num_mel_bins"`
	SourcePositions int64 `json:"max_source_positions"`
	TargetPositions int64 `json:"max_target_positions"`
	Augments        bool  `json:"apply_spec_augment"`
}

// readWhisper reads a configuration.
func readWhisper(c *hfconfig.Config) (*whisperConfig, error) {
	w := &whisperConfig{
		VocabSize: 51865, Bins: 80, SourcePositions: 1500, TargetPositions: 448,
		seq2seqConfig: seq2seqConfig{
			ModelSize: 384, EncoderLayers: 4, DecoderLayers: 4, EncoderHeads: 6, DecoderHeads: 6, EncoderFFN: 1536, DecoderFFN: 1536,
			Activation: "gelu", UseCache: true, TieWordEmbeddings: true,
		},
	}
	err := c.Renamed(seq2seqNames).Decode(w, "init_std", "scale_embedding", "is_encoder_decoder", "decoder_start_token_id", "suppress_tokens",
		"begin_suppress_tokens", "forced_decoder_ids", "use_weighted_layer_sum", "classifier_proj_size", "mask_time_prob", "mask_time_length",
		"mask_time_min_masks", "mask_feature_prob", "mask_feature_length", "mask_feature_min_masks", "median_filter_width", "alignment_heads")
	if err != nil {
		return nil, err
	}
	if w.Augments {
		return nil, errors.New("config: apply_spec_augment is not modelled")
	}
	return w, w.check()
}

// positions are those of the labels.
func (c *whisperConfig) positions() (most int64, key string) {
	return c.TargetPositions, "max_target_positions"
}

// features are what the encoder takes: its second convolution halves them.
func (c *whisperConfig) features() (bins, frames int64) { return c.Bins, 2 * c.SourcePositions }

// whisper is WhisperForConditionalGeneration
// (transformers/models/whisper/modeling_whisper.py).
type whisper struct {
	seq2seq
	cfg                            *whisperConfig
	conv1, conv2                   *torch.Conv1d
	sourcePosition, targetPosition *torch.Embedding
	tokens                         *torch.Embedding
	encoderLayers, decoderLayers   []seq2seqLayer
	encoderNorm, decoderNorm       *torch.LayerNorm
	head                           *torch.Linear // proj_out
}

// newWhisper makes the model, parameters in the order of its constructors. The
// positions of sounds are sinusoids, which do not train.
func newWhisper(t *torch.Torch, c *whisperConfig, r Run) (*Model, error) {
	layers, err := newSeq2seq(&c.seq2seqConfig, r)
	if err != nil {
		return nil, err
	}
	layers.normBefore, layers.scaled = true, true
	m, d := &whisper{seq2seq: layers, cfg: c}, r.DType
	m.conv1 = t.NewConv1d(c.Bins, c.ModelSize, 3, 1, 1, d).AsInput()
	m.conv2 = t.NewConv1d(c.ModelSize, c.ModelSize, 3, 2, 1, d)
	m.sourcePosition = t.NewEmbedding(c.SourcePositions, c.ModelSize, d).Freeze()
	m.sourcePosition.Weight.Named("embed_positions.weight")
	m.encoderLayers = m.newLayers(t, false)
	m.encoderNorm = t.NewLayerNorm(c.ModelSize, d)
	initSinusoids(t, c.SourcePositions, c.ModelSize, d)
	m.tokens = t.NewEmbedding(c.VocabSize, c.ModelSize, d).AsInput("embed_tokens")
	m.targetPosition = t.NewEmbedding(c.TargetPositions, c.ModelSize, d)
	m.decoderLayers = m.newLayers(t, true)
	m.decoderNorm = t.NewLayerNorm(c.ModelSize, d)
	m.head = t.NewLinear(c.ModelSize, c.VocabSize, false, d).AsOutput("proj_out")
	if c.TieWordEmbeddings {
		t.Tie(m.head, m.tokens)
	}
	return &Model{Forward: m.forward}, nil
}

// initSinusoids is sinusoids(), from which the positions are copied once.
func initSinusoids(t *torch.Torch, length, channels int64, d torch.DType) {
	f := t.Enter()
	scales := f.Let(t.FloatsOf(d, t.FloatsOf(d, t.Arange(channels/2))))
	times := f.Let(t.FloatsOf(d, t.Unsqueeze(t.Arange(length), 1), t.Unsqueeze(scales, 0)))
	sines, cosines := t.FloatsOf(d, times), t.FloatsOf(d, times)
	table := t.Cat(1, sines.Borrow(), cosines.Borrow())
	t.Drop(cosines) // a list drops its last element first
	t.Drop(sines)
	f.End()
	t.Drop(table)
}

// forward is WhisperForConditionalGeneration.forward, which caches keys and values
// also where there are labels.
func (m *whisper) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	ids := f.Let(torch.Value{})
	if batch.Labels != nil {
		ids.Set(shiftTokensRight(t, batch.Labels))
	} else {
		ids.Set(torch.Borrow(batch.DecoderIDs))
	}
	cache := m.newCache(false)
	g := t.Enter().In("model")
	encoded := g.Let(m.encode(t, batch.Features))
	last := g.Let(m.decode(t, ids, encoded, cache))
	hidden, kept := g.Keep(last), g.Keep(encoded)
	g.End()
	decoded := f.Let(hidden)
	logits := f.Let(t.In("proj_out", func() torch.Value { return t.Linear(decoded, m.head) }))
	var loss torch.Value
	if batch.Labels != nil {
		loss = f.Keep(f.Let(t.In("loss_fct", func() torch.Value {
			return t.CrossEntropy(t.View(logits, -1, m.cfg.VocabSize), t.View(torch.Borrow(batch.Labels), -1))
		})))
	}
	out := Output{Loss: loss, Logits: f.Keep(logits), Cache: cache.tensors(), Rest: []torch.Value{kept}}
	f.End()
	return out
}

// encode is WhisperEncoder.forward.
func (m *whisper) encode(t *torch.Torch, features *torch.Tensor) torch.Value {
	f := t.Enter().In("encoder")
	embeds := f.Let(t.GELU(t.In("conv1", func() torch.Value { return t.Conv1d(torch.Borrow(features), m.conv1) })))
	embeds.Set(t.GELU(t.In("conv2", func() torch.Value { return t.Conv1d(embeds, m.conv2) })))
	embeds.Set(t.Permute(embeds, 0, 2, 1))
	positions := f.Let(t.Arange(m.cfg.SourcePositions))
	hidden := f.Let(t.Add(embeds, t.Embedding(positions, m.sourcePosition)))
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.run.Train))
	none := &torch.Var{}
	m.layers(t, m.encoderLayers, hidden, none, none, none, encoderDecoderCache{})
	hidden.Set(t.In("layer_norm", func() torch.Value { return t.LayerNorm(hidden, m.encoderNorm) }))
	return f.Return(hidden)
}

// decode is WhisperDecoder.forward.
func (m *whisper) decode(t *torch.Torch, ids, encoded *torch.Var, cache encoderDecoderCache) torch.Value {
	f := t.Enter().In("decoder")
	embeds := f.Let(t.In("embed_tokens", func() torch.Value { return t.Embedding(ids, m.tokens) }))
	positions := f.Let(t.Integers(t.Arange(ids.Tensor().Dim(1))))
	positions.Set(t.Tile(t.Unsqueeze(positions, 0), ids.Tensor().Dim(0)))
	placed := f.Let(t.In("embed_positions", func() torch.Value { return t.Rows(torch.Borrow(m.targetPosition.Weight), positions) }))
	hidden := f.Let(t.Add(embeds, placed))
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.run.Train))
	mask := f.Let(causalMask{eager: m.run.Eager, cached: cache.self != nil}.make(t, embeds, positions, nil))
	m.layers(t, m.decoderLayers, hidden, mask, encoded, &torch.Var{}, cache)
	hidden.Set(t.In("layer_norm", func() torch.Value { return t.LayerNorm(hidden, m.decoderNorm) }))
	return f.Return(hidden)
}
