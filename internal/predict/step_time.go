package predict

import (
	"memorymark/internal/gpu"
	"memorymark/internal/steptime"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// parts is what the parts of a step ask of the card.
type parts struct {
	forward, backward torch.Work
	update            torch.Work // by the optimizer, and what else there is
	passes            int        // of each kind
}

// countPart adds what the latest span asked of the card to its part.
func (p *program) countPart() {
	now := p.t.Work()
	if len(p.spans) > 0 {
		into := &p.parts.update
		switch p.spans[len(p.spans)-1].phase {
		case forward:
			into = &p.parts.forward
		case backward:
			into = &p.parts.backward
		default:
		}
		into.Add(now.Since(p.began))
	}
	p.began = now
}

// countAgain counts what came since n times more: a pass counts for those that
// it stands for, too.
func (p *parts) countAgain(since parts, times int) {
	n := float64(max(times, 0))
	p.forward.Add(p.forward.Since(since.forward).Times(n))
	p.backward.Add(p.backward.Since(since.backward).Times(n))
	p.update.Add(p.update.Since(since.update).Times(n))
	p.passes += max(times, 0)
}

// Timing is the work of an update by its parts.
type Timing struct {
	forward, backward torch.Work // of one pass
	update            torch.Work // by the optimizer
}

// timing splits the work of the last step.
func (p *program) timing() Timing {
	share := 1 / float64(max(p.parts.passes, 1))
	return Timing{p.parts.forward.Times(share), p.parts.backward.Times(share), p.parts.update}
}

// stepTiming is the timing of a step: of the last one, or the mean of those whose
// lengths were drawn.
func (p *program) stepTiming() Timing {
	if len(p.drawn) == 0 {
		return p.timing()
	}
	var sum Timing
	for _, t := range p.drawn {
		sum = Timing{sum.forward.Plus(t.forward), sum.backward.Plus(t.backward), sum.update.Plus(t.update)}
	}
	share := 1 / float64(len(p.drawn))
	return Timing{sum.forward.Times(share), sum.backward.Times(share), sum.update.Times(share)}
}

// deeper is the timing of a model with a number of periods of layers more, of which
// another one has one.
func (t Timing) deeper(other Timing, periods float64) Timing {
	more := func(a, b torch.Work) torch.Work { return a.Times(1 - periods).Plus(b.Times(periods)) }
	return Timing{more(t.forward, other.forward), more(t.backward, other.backward), more(t.update, other.update)}
}

// timingLine is the timing of every batch, from those of two.
type timingLine struct{ forward, backward, update workLine }

type workLine struct {
	launches steptime.Line
	nodes    float64
	one, two torch.Traffic
}

func newTimingLine(one, two Timing) timingLine {
	line := func(a, b torch.Work) workLine {
		return workLine{steptime.LineOf(a.Launches, b.Launches), b.Nodes, a.Traffic, b.Traffic}
	}
	return timingLine{line(one.forward, two.forward), line(one.backward, two.backward), line(one.update, two.update)}
}

// at is the timing that lies a share of the way from the first to the second.
func (l timingLine) at(share float64) Timing {
	at := func(w workLine) torch.Work {
		return torch.Work{Launches: w.launches.At(share), Nodes: w.nodes, Traffic: w.one.Towards(w.two, share)}
	}
	return Timing{at(l.forward), at(l.backward), at(l.update)}
}

// Seconds are how long an update takes.
type Seconds struct {
	Computing float64 `json:"computing_seconds"` // as if no GPU waited for others
	Waiting   float64 `json:"waiting_seconds"`   // for others or for samples, while nothing is computed

	Range steptime.Range `json:"-"` // of all of it
}

// Total is all of it.
func (s Seconds) Total() float64 { return s.Computing + s.Waiting }

// Fed are the seconds with a loader that takes so long for the samples: it loads those
// of the next update while this one is computed.
func (s Seconds) Fed(loader float64) Seconds {
	s.Waiting += max(loader-s.Total(), 0)
	s.Range = s.Range.AtLeast(loader)
	return s
}

// Off is by which share more it takes at most in four of five cases, 0 if that is not known.
func (s Seconds) Off() float64 {
	if s.Range.High == 0 {
		return 0
	}
	return s.Range.High/s.Total() - 1
}

// Efficiency is the share of the time that is computed.
func (s Seconds) Efficiency() float64 { return s.Computing / s.Total() }

// Seconds estimates how long an update of a number of passes takes on cards that
// share it so; nil is one card.
func (t Timing) Seconds(card *gpu.Card, p *workload.Parallel, passes int64) Seconds {
	forward, backward, update := t.busy(card)
	parts := []steptime.Busy{forward, backward, update}
	if passes > 1 {
		parts = append([]steptime.Busy{forward.Plus(backward).Times(float64(passes - 1))}, parts...)
	}
	s := Seconds{
		Computing: steptime.Seconds(parts...),
		Waiting:   t.waiting(card, p, passes, steptime.Seconds(forward), steptime.Seconds(backward)),
	}
	s.Range = steptime.RangeOf(parts...).Plus(aroundLinks(s.Waiting))
	return s
}

// busy is how long each part keeps a card and its host.
func (t Timing) busy(card *gpu.Card) (forward, backward, update steptime.Busy) {
	return t.forward.Launches.Busy(card, t.forward.Nodes), t.backward.Launches.Busy(card, t.backward.Nodes), t.update.Launches.BusyUpdating(card)
}

// addTime says how long a step takes, and how far that can be trusted.
func (s *Process) addTime(out *Prediction) {
	w, timing := s.program.w, s.program.stepTiming()
	seconds := s.stepTime()
	if seconds.Total() == 0 {
		return
	}
	out.StepSeconds, out.StepRange, out.StepCompared = seconds.Total(), &seconds.Range, steptime.Compared(s.card)
	out.CPUBound = timing.cpuBound(s.card, float64(w.Accumulate))
	gpus := 1.
	if w.Parallel != nil {
		gpus = float64(w.Parallel.GPUs)
	}
	out.StepKWh = steptime.KWh(s.card, out.StepSeconds*gpus)
}

// cpuBound is what launching leaves of the card's time, nil where the card is not
// held up by it.
func (t Timing) cpuBound(card *gpu.Card, passes float64) *CPUBound {
	forward, backward, update := t.busy(card)
	b := forward.Plus(backward).Times(passes).Plus(update)
	if b.Host <= b.Device {
		return nil
	}
	out := &CPUBound{DeviceSeconds: b.Device}
	for _, l := range t.forward.Plus(t.backward).Times(passes).Plus(t.update).Launches {
		out.Launches += l.Count
	}
	return out
}

// Feed makes the prediction that of a loader which takes that many seconds for a sample,
// with all of its workers.
func (p *Prediction) Feed(perSample float64) {
	if p.StepSeconds == 0 || perSample <= 0 {
		return
	}
	loader := perSample * float64(p.Workload.Batch*int64(p.Workload.Accumulate))
	fed := Seconds{Computing: p.StepSeconds, Range: *p.StepRange}.Fed(loader)
	p.Loader = &LoaderTime{Seconds: loader, WaitingSeconds: fed.Waiting}
	slower := fed.Total() / p.StepSeconds
	p.StepSeconds = fed.Total()
	p.SamplesPerSecond /= slower
	p.TokensPerSecond /= slower
	p.StepKWh *= slower
	p.StepRange = &fed.Range
}
