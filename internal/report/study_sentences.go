package report

import (
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/study"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// This file says in sentences what the numbers of a study show. A sentence is
// made only if the numbers bear it out: each claim next to a number has its
// condition here.

// phrase is where in a step something is.
func phrase(phase string) string {
	if phase == trace.OptimizerMark {
		return "the optimizer's step"
	}
	return phase
}

func ratio(a, b bytesize.Bytes) float64 { return float64(a) / float64(max(b, 1)) }

// times writes how often one amount goes into another.
func times(r float64) string { return fmt.Sprintf("%.3g times", r) }

// peakSentences say how the peaks of forward and training compare, grow with
// the context, and what they are made of.
func (m *ModelStudy) peakSentences() []string {
	shortest, longest := slices.Min(m.plan.Contexts), m.plan.Longest()
	fwd, train := m.fitting(longest, workload.Forward), m.fitting(longest, workload.Train)
	var out []string
	if fwd != nil && train != nil {
		out = append(out, fmt.Sprintf("At context %d a training step peaks at %v, in %s; forward alone reaches %v, %.0f %% of that.",
			longest, train.Peak.Allocated, phrase(train.Peak.Phase), fwd.Peak.Allocated, 100*ratio(fwd.Peak.Allocated, train.Peak.Allocated)))
	}
	if small := m.fitting(shortest, workload.Forward); small != nil && fwd != nil && shortest < longest {
		out = append(out, forwardGrowth(small, fwd))
	}
	if small := m.fitting(shortest, workload.Train); small != nil && train != nil && shortest < longest {
		out = append(out, m.trainingGrowth(small, train))
	}
	if train != nil {
		out = append(out, madeOf(train))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// fitting is a cell in fp32 that fits, nil if there is none.
func (m *ModelStudy) fitting(context int64, phase workload.Phase) *StudyCell {
	if c := m.at(context, phase, workload.FP32); c != nil && c.Fits() {
		return c
	}
	return nil
}

// forwardGrowth compares forward at two contexts.
func forwardGrowth(small, large *StudyCell) string {
	a, b := small.Phase(trace.ForwardMark), large.Phase(trace.ForwardMark)
	if a == nil || b == nil || len(a.Made) == 0 || len(b.Made) == 0 {
		return ""
	}
	tokens := float64(large.Cell.Workload.Sequence) / float64(small.Cell.Workload.Sequence)
	s := fmt.Sprintf("With %s the tokens, forward goes from %v to %v: its %v of parameters stay,",
		times(tokens), a.Allocated, b.Allocated, b.Of(trace.Parameter))
	activations := ratio(b.Of(trace.Activation), a.Of(trace.Activation))
	s += fmt.Sprintf(" and its activations grow from %v to %v, %s", a.Of(trace.Activation), b.Of(trace.Activation), times(activations))
	if activations > 1.02*tokens {
		s += ", faster than the tokens, since attention scores grow with their square"
	}
	return s + "."
}

// trainingGrowth compares training at two contexts, by where its peaks are.
func (m *ModelStudy) trainingGrowth(small, large *StudyCell) string {
	a, b := small.Peak, large.Peak
	s := fmt.Sprintf("Training goes from %v at context %d to %v at context %d", a.Allocated, small.Cell.Workload.Sequence, b.Allocated, large.Cell.Workload.Sequence)
	always := true
	for _, context := range m.plan.Contexts {
		c := m.fitting(context, workload.Train)
		always = always && c != nil && c.Peak.Phase == trace.OptimizerMark
	}
	switch {
	case always && ratio(a.Allocated, b.Allocated) > 0.97 && ratio(a.Allocated, b.Allocated) < 1.03:
		s += ": at all contexts its peak is in the optimizer's step, where the activations are gone, so the context hardly matters"
	case a.Phase != b.Phase:
		s += fmt.Sprintf(": the peak moves from %s to %s", phrase(a.Phase), phrase(b.Phase))
	default:
		s += fmt.Sprintf(", %s as much, with its peak in %s", times(ratio(b.Allocated, a.Allocated)), phrase(b.Phase))
	}
	return s + "."
}

// madeOf names the largest parts of a cell's peak.
func madeOf(c *StudyCell) string {
	p := c.Phase(c.Peak.Phase)
	if p == nil || len(p.Made) == 0 {
		return ""
	}
	parts := slices.Clone(p.Made)
	slices.SortStableFunc(parts, func(a, b study.CategoryBytes) int { return int(b.Bytes - a.Bytes) })
	var texts []string
	for _, part := range parts {
		if share := ratio(part.Bytes, p.Requested); share >= 0.05 {
			texts = append(texts, fmt.Sprintf("%.0f %% %s (%v)", 100*share, pluralCategory(part.Category), part.Bytes))
		}
	}
	return fmt.Sprintf("The peak of training at context %d is %s.", c.Cell.Workload.Sequence, list(texts))
}

func pluralCategory(name string) string {
	switch name {
	case "parameter", "gradient", "activation", "workspace":
		return name + "s"
	case "temporary":
		return "temporaries"
	default:
		return name
	}
}

// list joins parts as in "a, b and c".
func list(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// timelineSentences follow a timeline from part to part.
func (c *StudyCell) timelineSentences() []string {
	fwd, back, step := c.Phase(trace.ForwardMark), c.Phase(trace.BackwardMark), c.Phase(trace.OptimizerMark)
	if !c.Fits() || fwd == nil || len(fwd.Made) == 0 {
		return nil
	}
	held := fmt.Sprintf("%v of activations", fwd.Of(trace.Activation)-fwd.WeightCopies)
	if fwd.WeightCopies > 0 {
		held += fmt.Sprintf(" and %v of weights that autocast has cast", fwd.WeightCopies)
	}
	out := []string{fmt.Sprintf("Forward climbs from %v to %v; %s are held by then.", fwd.Begin, fwd.Requested, held)}
	after := fmt.Sprintf("After the step %v is left.", c.After)
	if back == nil {
		return append(out, after)
	}
	s := fmt.Sprintf("Backward starts from %v, peaks at %v and ends at %v", back.Begin, back.Requested, back.End)
	if step != nil && step.Of(trace.Gradient) > 0 {
		s += fmt.Sprintf(": activations go, and %v of gradients are there instead", step.Of(trace.Gradient))
	}
	out = append(out, s+".")
	if step != nil && step.Requested > 0 {
		s := fmt.Sprintf("The optimizer's step reaches %v", step.Requested)
		if temporary := step.Of(trace.Temporary); temporary > step.Requested/100 {
			s += fmt.Sprintf(", %v of it temporaries", temporary)
		}
		out = append(out, s+".")
	}
	return append(out, fmt.Sprintf("The peak of the step is in %s.", phrase(c.Peak.Phase)), after)
}

// mixedSentences say what mixed precision saves, and why not more.
func (m *ModelStudy) mixedSentences() []string {
	var out []string
	if c := m.compared(workload.Forward); c != nil {
		out = append(out, m.forwardMixed(c)...)
	}
	if c := m.compared(workload.Train); c != nil {
		out = append(out, m.trainingMixed(c)...)
	}
	return out
}

func (m *ModelStudy) forwardMixed(c *study.PrecisionComparison) []string {
	p := c.Phase(trace.ForwardMark)
	if p == nil || len(p.Full.Made) == 0 {
		return nil
	}
	name := study.PrecisionName(m.plan.Mixed)
	a, copies := p.Row(study.ActivationRow), p.Row(study.WeightCopiesRow)
	saved := a.Full - a.Mixed
	s := fmt.Sprintf("In %s the activations of forward take %v instead of %v, %.0f %% less", name, a.Mixed, a.Full, 100*ratio(saved, a.Full))
	if ratio(a.Mixed, a.Full) > 0.52 {
		s += "; less than half is saved, because what autocast leaves in fp32 (sums, norms, softmax) does not shrink"
	}
	out := []string{s + "."}
	if copies.Mixed > 0 {
		s := fmt.Sprintf("Autocast also keeps a copy in %s of each weight that it has used, %v", name, copies.Mixed)
		switch {
		case copies.Mixed > saved:
			s += fmt.Sprintf(": more than the %v that activations save, so forward takes %v instead of %v", saved, p.Mixed.Allocated, p.Full.Allocated)
		default:
			s += fmt.Sprintf(", which takes back %.0f %% of what activations save: forward takes %v instead of %v",
				100*ratio(copies.Mixed, saved), p.Mixed.Allocated, p.Full.Allocated)
		}
		out = append(out, s+".")
	}
	return out
}

func (m *ModelStudy) trainingMixed(c *study.PrecisionComparison) []string {
	var out []string
	if p := c.Phase(c.Full.Peak.Phase); p != nil && len(p.Full.Made) > 0 {
		state := p.Full.Of(trace.OptimizerState)
		out = append(out, fmt.Sprintf("Parameters, gradients and optimizer state stay in fp32: at the peak of training they are %v of %v (%.0f %%), "+
			"optimizer state alone %v (%.0f %%), and no precision of autocast changes them.",
			p.Fixed(), p.Full.Requested, 100*ratio(p.Fixed(), p.Full.Requested), state, 100*ratio(state, p.Full.Requested)))
	}
	full, mixed := c.Full.Peak, c.Mixed.Peak
	change := ratio(mixed.Allocated, full.Allocated) - 1
	s := fmt.Sprintf("The peak of training goes from %v to %v", full.Allocated, mixed.Allocated)
	switch {
	case change > 0.005:
		s += fmt.Sprintf(": it rises by %.1f %%", 100*change)
	case change < -0.005:
		s += fmt.Sprintf(": it falls by %.1f %%, not by half", -100*change)
	default:
		s += ": it stays as it is"
	}
	if full.Phase == trace.OptimizerMark && mixed.Phase == trace.OptimizerMark {
		s += "; it is in the optimizer's step both times, when the activations are gone"
	}
	out = append(out, s+".")
	if c.Full.StepSeconds != nil && c.Mixed.StepSeconds != nil && *c.Mixed.StepSeconds > 0 {
		out = append(out, fmt.Sprintf("A step takes %s instead of %s, %.2g × as fast%s.", seconds(*c.Mixed.StepSeconds), seconds(*c.Full.StepSeconds),
			*c.Full.StepSeconds / *c.Mixed.StepSeconds, estimated(c.Full.Engine)))
	}
	return out
}
