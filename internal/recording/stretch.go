package recording

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/trace"
)

// Stretch sums up a range of events: what is allocated, what is freed, what
// remains, and what is live at the peak.
type Stretch struct {
	Device     int            `json:"device"`
	From       int            `json:"from"`
	To         int            `json:"to" doc:"excluded"`
	Micros     *int64         `json:"duration_us,omitempty"`
	Peak       StretchPeak    `json:"peak"`
	Sum        StretchSums    `json:"sum"`
	ByLine     []StretchGroup `json:"by_line"`
	ByModule   []StretchGroup `json:"by_module"`
	ByCategory []StretchGroup `json:"by_category"`
}

// StretchPeak is the first moment of a stretch with the most live bytes.
type StretchPeak struct {
	Event int   `json:"event"`
	Bytes int64 `json:"live_bytes"`
}

// StretchSums are bytes and counts.
type StretchSums struct {
	Made       int64 `json:"made_bytes"`
	MadeCount  int   `json:"made_count"`
	Freed      int64 `json:"freed_bytes"`
	FreedCount int   `json:"freed_count"`
	Kept       int64 `json:"kept_bytes" doc:"made here and live at the end"`
	AtPeak     int64 `json:"at_peak_bytes" doc:"live when the stretch is highest, also what is older"`
}

// StretchGroup is the part of one line, module or category.
type StretchGroup struct {
	Label string `json:"label"`
	StretchSums
}

// Stretch sums up the events from one to another, the second excluded. Each
// list has the n largest groups and the sum of the rest; 0 is all of them.
func (r *Recording) Stretch(from, to, n int) (*Stretch, error) {
	if from < 0 || to > len(r.Events) || from >= to {
		return nil, &MomentError{fmt.Sprintf("%d to %d", from, to), fmt.Sprintf("no stretch of the %d events of device %d", len(r.Events), r.Device)}
	}
	s := &Stretch{Device: r.Device, From: from, To: to, Peak: r.highest(from, to)}
	if first, last := r.Events[from].Time, r.Events[to-1].Time; first > 0 && last >= first {
		micros := last - first
		s.Micros = &micros
	}
	lines, modules := r.stackNames(label), r.stackNames(moduleOf)
	line, module, category := make(tally), make(tally), make(tally)
	lifetimes := r.Lifetimes()
	for i := range lifetimes {
		l := &lifetimes[i]
		part := s.part(l)
		if part == (StretchSums{}) {
			continue
		}
		s.Sum.add(part)
		line.add(lines(l), part)
		module.add(modules(l), part)
		category.add(l.For.String(), part)
	}
	s.ByLine, s.ByModule, s.ByCategory = line.largest(n), module.largest(n), category.largest(n)
	return s, nil
}

// part is the contribution of an allocation.
func (s *Stretch) part(l *trace.Lifetime) StretchSums {
	var p StretchSums
	if made := l.Alloc >= s.From && l.Alloc < s.To; made {
		p.Made, p.MadeCount = l.Size, 1
		if l.Gone >= s.To {
			p.Kept = l.Size
		}
	}
	if l.Gone >= s.From && l.Gone < s.To {
		p.Freed, p.FreedCount = l.Size, 1
	}
	if l.LiveAt(s.Peak.Event) {
		p.AtPeak = l.Size
	}
	return p
}

func (s *StretchSums) add(p StretchSums) {
	s.Made += p.Made
	s.MadeCount += p.MadeCount
	s.Freed += p.Freed
	s.FreedCount += p.FreedCount
	s.Kept += p.Kept
	s.AtPeak += p.AtPeak
}

// highest finds the moment after one of the events with the most live bytes.
func (r *Recording) highest(from, to int) StretchPeak {
	lifetimes := r.Lifetimes()
	live := trace.At(lifetimes, from-1).Bytes
	changes := make([]int64, to-from)
	for i := range lifetimes {
		l := &lifetimes[i]
		if l.Alloc >= from && l.Alloc < to {
			changes[l.Alloc-from] += l.Size
		}
		if l.Gone >= from && l.Gone < to {
			changes[l.Gone-from] -= l.Size
		}
	}
	peak := StretchPeak{Event: -1}
	for i, change := range changes {
		if live += change; peak.Event < 0 || live > peak.Bytes {
			peak = StretchPeak{from + i, live}
		}
	}
	return peak
}

// stackNames names the stack of an allocation. There are few stacks, and
// millions of allocations.
func (r *Recording) stackNames(name func([]trace.Frame) string) func(*trace.Lifetime) string {
	names := make(map[trace.StackID]string)
	return func(l *trace.Lifetime) string {
		if l.Alloc < 0 && l.Stack == 0 {
			return "before the recording"
		}
		text, ok := names[l.Stack]
		if !ok {
			text = name(r.Stacks.Frames(l.Stack))
			names[l.Stack] = text
		}
		return text
	}
}

// moduleOf names the part of a model behind a stack: the module of a
// prediction, else the file that asked for the memory.
func moduleOf(frames []trace.Frame) string {
	frame, ok := trace.InnermostModel(frames)
	switch {
	case !ok:
		return "no stack"
	case frame.Line == 0:
		return trace.AnyLayer(frame.Name)
	}
	return strings.TrimSuffix(frame.Short().File, ".py")
}

// tally sums up by label.
type tally map[string]*StretchSums

func (t tally) add(label string, p StretchSums) {
	if t[label] == nil {
		t[label] = new(StretchSums)
	}
	t[label].add(p)
}

// largest lists the n largest groups at the peak, and the rest combined.
func (t tally) largest(n int) []StretchGroup {
	out := []StretchGroup{}
	for label, sums := range t {
		out = append(out, StretchGroup{label, *sums})
	}
	slices.SortFunc(out, func(a, b StretchGroup) int {
		return cmp.Or(cmp.Compare(b.AtPeak, a.AtPeak), cmp.Compare(b.Made, a.Made), cmp.Compare(a.Label, b.Label))
	})
	if n <= 0 || len(out) <= n {
		return out
	}
	rest := StretchGroup{Label: fmt.Sprintf("%d others", len(out)-n)}
	for _, g := range out[n:] {
		rest.add(g.StretchSums)
	}
	return append(out[:n], rest)
}
