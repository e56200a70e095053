package workload

import (
	"fmt"
	"strings"

	"memorymark/internal/invalid"
	"memorymark/internal/models"
)

// Schedule is the order in which a stage of a pipeline runs its microbatches, by a
// class of torch.distributed.pipelining.
type Schedule string

// The schedules.
const (
	GPipe                 Schedule = "gpipe" // ScheduleGPipe: all forward, then all backward
	OneForwardOneBackward Schedule = "1f1b"  // Schedule1F1B: as few in flight as there are stages left
)

// settlePipeline fills in the defaults of a pipeline.
func (p *Parallel) settlePipeline() {
	if p.GPUs == 0 {
		p.GPUs = int64(len(p.Stages))
	}
	if p.Schedule == "" {
		p.Schedule = OneForwardOneBackward
	}
	if p.Microbatches == 0 {
		p.Microbatches = p.GPUs
	}
}

// checkPipeline reports the errors of a pipeline, and what is not modelled.
func (p *Parallel) checkPipeline(w *Workload) error {
	if err := p.checkSchedule(w); err != nil {
		return invalid.At("parallel", err)
	}
	for _, o := range []struct {
		key   string
		wrong bool
		must  string
	}{
		{"adapter", w.Adapter != nil, "there must be none"},
		{"quantize", w.Quantize != NotQuantized, "it must be none"},
		{"precision", w.Precision == AMPBF16 || w.Precision == AMPFP16, fmt.Sprintf("it must be %s, %s or %s", FP32, TF32, BF16)},
		{"phase", w.Phase != Train, fmt.Sprintf("it must be %s", Train)},
		{"loss", w.Loss != Labels, fmt.Sprintf("it must be %s", Labels)},
		{"attention_mask", w.AttentionMask != NoMask, fmt.Sprintf("it must be %s", NoMask)},
		{"accumulate", w.Accumulate > 1, "it must be 1; microbatches accumulate gradients"},
		{"clip_grad_norm", w.ClipGradNorm, "it must be false"},
		{"loop", w.Loop.IsLibrarys(), "it must be plain"},
		{"lengths", w.Varied(), "leave it out"},
	} {
		if o.wrong {
			return invalid.At(o.key, fmt.Errorf("parallel is a pipeline, for which this %s is not modelled; %s", o.key, o.must))
		}
	}
	return nil
}

// checkSchedule reports what torch.distributed.pipelining refuses.
func (p *Parallel) checkSchedule(w *Workload) error {
	switch {
	case int64(len(p.Stages)) != p.GPUs:
		return fmt.Errorf("there are %d stages and %d gpus; each GPU has one stage", len(p.Stages), p.GPUs)
	case p.Schedule != GPipe && p.Schedule != OneForwardOneBackward:
		return invalid.OneOf("schedule of parallel", string(p.Schedule), []string{string(OneForwardOneBackward), string(GPipe)})
	case p.Microbatches < 1 || w.Batch%p.Microbatches != 0:
		return fmt.Errorf("microbatches is %d; it must divide the batch, which is %d", p.Microbatches, w.Batch)
	case p.Schedule == OneForwardOneBackward && p.Microbatches < p.GPUs:
		// torch/distributed/pipelining/schedules.py, Schedule1F1B.__init__
		return fmt.Errorf("microbatches is %d; with 1f1b it must be at least the number of stages, %d", p.Microbatches, p.GPUs)
	}
	for i, n := range p.Stages {
		if n < 1 {
			return fmt.Errorf("stage %d has %d layers; it must have at least 1", i, n)
		}
	}
	if w.Config == nil || w.Unmodelled != "" {
		return nil
	}
	return models.CheckStages(w.Config, p.Stages)
}

// Stage is the part of the model that a rank has.
func (p *Parallel) Stage(rank int64) *models.Stage {
	s := &models.Stage{First: rank == 0, Last: rank == p.GPUs-1}
	for _, n := range p.Stages[:rank] {
		s.From += n
	}
	s.To = s.From + p.Stages[rank]
	return s
}

// stagesText is the JSON of stages as people write them on a command line: 8/8/8/8.
func stagesText(text string) []byte { return []byte("[" + strings.ReplaceAll(text, "/", ",") + "]") }

// pipelineText says in a few words how a pipeline is run.
func (p *Parallel) pipelineText() string {
	layers := make([]string, len(p.Stages))
	for i, n := range p.Stages {
		layers[i] = fmt.Sprint(n)
	}
	return fmt.Sprintf("stages of %s layers, %s with %d microbatches", strings.Join(layers, "/"), p.Schedule, p.Microbatches)
}
