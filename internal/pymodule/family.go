package pymodule

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/workbudget"
)

// This file makes a library a source of families (models.Source).

// Embedded is the library of the transformers that the program was built with, nil if it
// was built without (make models).
var Embedded = sync.OnceValue(func() models.Source {
	trees, err := EmbeddedTrees()
	if trees == nil || err != nil {
		return nil
	}
	return NewLibrary(trees)
})

// tasks are what classes of the auto mappings are trained on, as the prober has it
// (batches.py). Where a configuration names no class, the first mapping that knows its
// model type decides.
var tasks = []struct {
	mapping string
	labels  models.Labels
}{
	{"MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", models.TargetIDs},
	{"MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES", models.TargetIDs},
	{"MODEL_FOR_MASKED_LM_MAPPING_NAMES", models.SameIDs},
	{"MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", models.SameIDs},
	{"MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", models.Classes},
	{"MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES", models.Classes},
	{"MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES", models.SameIDs},
	{"MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", models.Classes},
	{"MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES", models.TokenTags},
	{"MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES", models.Spans},
	{"MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES", models.Classes},
	{"MODEL_MAPPING_NAMES", models.NoLabels},
}

// Name is what the library is the source of.
func (l *Library) Name() string { return "transformers " + l.trees.Version }

// Family is the row of a model type, nil if the source has none of that name.
func (l *Library) Family(modelType string) *models.Family {
	l.mu.Lock()
	f, ok := l.families[modelType]
	l.mu.Unlock()
	if ok {
		return f
	}
	m := l.machine()
	defer l.idle.Put(m)
	if m.entry("CONFIG_MAPPING_NAMES", modelType) != "" {
		if heads := m.heads(modelType); len(heads) > 0 {
			f = models.EvaluatedFamily(l, modelType, heads)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.families) < maxFamilies {
		l.families[modelType] = f
	}
	return f
}

// maxFamilies are remembered: more than there are.
const maxFamilies = 2000

// heads are the classes that the mappings have for a model type.
func (m *Machine) heads(modelType string) []models.Head {
	var heads []models.Head
	for _, task := range tasks {
		d, ok := m.mapping(task.mapping).(*dict)
		if !ok {
			continue
		}
		v, _ := d.get(modelType)
		names := []value{v}
		if several, ok := v.(*tuple); ok {
			names = several.items
		}
		for _, v := range names {
			name, ok := v.(string)
			if !ok || slices.ContainsFunc(heads, func(h models.Head) bool { return h.Architecture == name }) {
				continue
			}
			heads = append(heads, m.head(modelType, name, task.labels))
		}
	}
	return heads
}

// trial is what a model is tried with: enough for everything to run.
const (
	trialBatch = 2
	trialWork  = 5_000_000 // events; what takes longer is not tried to its end
	maxTrials  = 512       // are remembered
)

// Try evaluates a forward and a backward pass of a model. What it fails with is said; a
// model that takes too long is known as far as that went.
func (l *Library) Try(c *hfconfig.Config, r models.Run) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%s %s %s %+v %+v", c.ModelType, c.Architecture, data, r, r.Adapter)
	l.mu.Lock()
	known, ok := l.tried[key]
	l.mu.Unlock()
	if ok {
		return known
	}
	err = unlessTooMuch(l.try(c, r))
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tried) >= maxTrials {
		clear(l.tried)
	}
	l.tried[key] = err
	return err
}

func (l *Library) try(c *hfconfig.Config, r models.Run) (err error) {
	defer catchInterruption(&err)
	t := torch.New(torch.Device{SMs: 132, ThreadsPerSM: 2048, Major: 9})
	t.Version, t.Budget = r.Versions.Torch, workbudget.New(trialWork, nil)
	family := l.Family(c.ModelType)
	if family == nil {
		return fmt.Errorf("the source has no model_type %q", c.ModelType)
	}
	m, err := family.New(t, c, r)
	if err != nil {
		return err
	}
	b, err := l.trialBatch(t, c, r, family)
	if err != nil {
		return err
	}
	out := m.Forward(t, b)
	loss := out.Loss
	if loss == (torch.Value{}) {
		loss = t.Mean(out.Logits.Borrow())
	}
	if loss.Tensor().RequiresGrad() { // not if everything is frozen
		t.Backward(loss.Borrow())
	}
	t.End()
	m.End()
	return nil
}

// trialBatch is a small batch.
func (l *Library) trialBatch(t *torch.Torch, c *hfconfig.Config, r models.Run, f *models.Family) (*models.Batch, error) {
	facts, err := l.Read(c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(f.Heads, func(h models.Head) bool { return h.Architecture == c.Architecture })
	b := &models.Batch{}
	ids := func() *torch.Tensor { return t.Input(torch.Int64, trialBatch, r.Sequence) }
	switch {
	case facts.Bins > 0:
		b.Features = t.Input(r.DType, trialBatch, facts.Bins, facts.Frames)
	case facts.Images != nil:
		b.Pixels = t.Images(r.DType, false, append(append([]int64{trialBatch}, facts.Images...), r.Image, r.Image)...)
	default:
		b.IDs = ids()
	}
	if r.Mask != models.NoMask && b.IDs != nil {
		b.Mask, b.Padded = ids(), r.Mask == models.PaddedMask
	}
	switch f.Heads[i].Labels {
	case models.SameIDs:
		b.Labels = b.IDs
	case models.TargetIDs, models.TokenTags:
		b.Labels = ids()
	case models.Classes:
		b.Labels = t.Input(torch.Int64, trialBatch)
	case models.Spans:
		b.Starts, b.Ends = t.Input(torch.Int64, trialBatch), t.Input(torch.Int64, trialBatch)
	case models.NoLabels, models.Pairs:
	}
	return b, nil
}
