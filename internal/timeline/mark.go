package timeline

import (
	"strings"

	"memorymark/internal/trace"
)

// Span is a phase of the program.
type Span struct {
	Name  string `json:"name"`  // as the program gave it, "Optimizer.step#AdamW.step"
	From  int    `json:"from"`  // events, To excluded
	To    int    `json:"to"`    //
	Depth int    `json:"depth"` // 0 for the outermost
	// Peak is the most active memory in the phase, and PeakEvent the first
	// moment at which it was reached.
	Peak      int64 `json:"peak"`
	PeakEvent int   `json:"peak_event"`
}

// Label is the short form of the name: PyTorch puts the kind before a "#".
func (s Span) Label() string { return s.Name[strings.LastIndexByte(s.Name, '#')+1:] }

// FailedAllocation is an allocation that failed for good.
type FailedAllocation struct {
	Event int   `json:"event"`
	Size  int64 `json:"size"` // asked for, as the allocator rounded it
	Free  int64 `json:"free"` // on the device then
}

// MaxDepth is how many spans are shown above each other.
const MaxDepth = 4

// spans pairs the marks. What is never closed lasts to the end; what no event
// falls into, or what shares its column with the span before, is left out. The
// active memory is that before the first event and after each.
func (tl *Timeline) spans(marks []trace.Mark, active []int64) []Span {
	var spans []Span
	open := make(map[string][]int) // indices into spans by name, the innermost last
	depth := 0
	for _, m := range marks {
		if !m.End {
			open[m.Name] = append(open[m.Name], len(spans))
			spans = append(spans, Span{Name: m.Name, From: m.Event, To: tl.To, Depth: depth})
			depth++
		} else if of := open[m.Name]; len(of) > 0 {
			spans[of[len(of)-1]].To = m.Event
			open[m.Name] = of[:len(of)-1]
			depth--
		}
	}
	spans = tl.visible(spans)
	for i := range spans {
		spans[i].findPeak(active)
	}
	return spans
}

func (s *Span) findPeak(active []int64) {
	s.PeakEvent = s.From
	for e := s.From; e < s.To; e++ {
		if active[e+1] > active[s.PeakEvent+1] {
			s.PeakEvent = e
		}
	}
	s.Peak = active[s.PeakEvent+1]
}

func (tl *Timeline) visible(spans []Span) []Span {
	kept := spans[:0]
	var last [MaxDepth]int // the column in which the latest span of a depth ends, plus 1
	for _, s := range spans {
		s.From, s.To = max(s.From, tl.From), min(s.To, tl.To)
		if s.From >= s.To || s.Depth >= MaxDepth {
			continue
		}
		column := int(tl.X(s.To - 1))
		if column < last[s.Depth] {
			continue
		}
		last[s.Depth] = column + 1
		kept = append(kept, s)
	}
	return kept
}

// failures returns at most one failure a column, the first.
func (tl *Timeline) failures(t *trace.Trace) []FailedAllocation {
	var found []FailedAllocation
	last := -1
	for i := tl.From; i < min(tl.To, len(t.Events)); i++ {
		e := &t.Events[i]
		if e.Action != trace.OutOfMemory || int(tl.X(i)) == last {
			continue
		}
		last = int(tl.X(i))
		f := FailedAllocation{Event: i, Size: e.Size}
		if t.Tables != nil && e.Note > 0 && int(e.Note) < len(t.Notes) {
			f.Free = t.Notes[e.Note].DeviceFree
		}
		found = append(found, f)
	}
	return found
}
