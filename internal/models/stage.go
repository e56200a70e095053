package models

import (
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

// Stage is the part of a decoder that a rank of a pipeline has: some of its layers, the
// embedding before the first one, and the norm and the head after the last one. It is
// the model of transformers with the others taken out, called with what the stage
// before it returned as inputs_embeds. Nil is the whole model.
type Stage struct {
	From, To    int64 // layers
	First, Last bool
}

func (s *Stage) has(layer int64) bool { return s == nil || s.From <= layer && layer < s.To }

// before is how many layers other stages have before this one's.
func (s *Stage) before() int {
	if s == nil {
		return 0
	}
	return int(s.From)
}

func (s *Stage) first() bool { return s == nil || s.First }

func (s *Stage) last() bool { return s == nil || s.Last }

// CheckStages reports why a model cannot be split into stages of that many layers each.
func CheckStages(c *hfconfig.Config, layers []int64) error {
	family, head, err := Find(c)
	if err != nil {
		return nil //nolint:nilerr // Check says it
	}
	if !family.stages || head.Labels != SameIDs {
		return fmt.Errorf("stages of a %s are not modelled; those of causal language models of Llama, Mistral, Qwen2 and Qwen3 are", head.Architecture)
	}
	cfg, err := family.read(c)
	if err != nil {
		return nil //nolint:nilerr // Check says it
	}
	sum, all := int64(0), cfg.(*llamaConfig).Layers
	for _, n := range layers {
		sum += n
	}
	if sum != all {
		return fmt.Errorf("stages have %d layers in all; the model has %d", sum, all)
	}
	return nil
}

// stage calls the part of the model that a rank has.
func (m *llama) stage(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	out := f.Let(m.model(t, batch, nil))
	if m.head != nil {
		return Output{Logits: f.Return(t.In("lm_head", func() torch.Value { return t.Linear(out, m.head) }))}
	}
	return Output{Logits: f.Return(out)}
}

// lossOf is the model's loss_function of logits and labels.
func (m *llama) lossOf(t *torch.Torch, logits *torch.Var, labels *torch.Tensor) torch.Value {
	return causalLMLoss(t, logits, &Batch{Labels: labels})
}
