package recording

import (
	"errors"
	"testing"

	"memorymark/internal/trace"
)

// A stretch agrees with a scan of its events, and its groups add up.
func TestStretch(t *testing.T) {
	r := open(t)
	const from, to = 20_000, 24_000
	s, err := r.Stretch(from, to, 5)
	if err != nil {
		t.Fatal(err)
	}
	lifetimes := r.Lifetimes()
	var want StretchSums
	for i := range lifetimes {
		if l := lifetimes[i]; l.Alloc >= from && l.Alloc < to {
			want.Made += l.Size
			want.MadeCount++
		}
	}
	if s.Sum.Made != want.Made || s.Sum.MadeCount != want.MadeCount {
		t.Errorf("made %+v, want %+v", s.Sum, want)
	}
	if peak := r.Peak(); s.Peak.Event != peak.Event || s.Peak.Bytes != peak.Bytes || s.Sum.AtPeak != peak.Bytes {
		t.Errorf("peak %+v of %d, want %+v", s.Peak, s.Sum.AtPeak, peak)
	}
	before, after := trace.At(lifetimes, from-1).Bytes, trace.At(lifetimes, to-1).Bytes
	if after-before != s.Sum.Made-s.Sum.Freed {
		t.Errorf("from %d to %d live bytes, but made %d and freed %d", before, after, s.Sum.Made, s.Sum.Freed)
	}
	for name, groups := range map[string][]StretchGroup{"line": s.ByLine, "module": s.ByModule, "category": s.ByCategory} {
		var sum StretchSums
		for _, g := range groups {
			sum.add(g.StretchSums)
		}
		if sum != s.Sum || len(groups) < 3 || len(groups) > 8 {
			t.Errorf("%d groups by %s come to %+v, want %+v", len(groups), name, sum, s.Sum)
		}
	}
	if s.ByCategory[0].Label != "activation" || s.ByModule[0].Label != "transformers/activations" {
		t.Errorf("largest: %q, %q", s.ByCategory[0].Label, s.ByModule[0].Label)
	}
}

func TestStretchRefuses(t *testing.T) {
	r := open(t)
	for _, events := range [][2]int{{-1, 5}, {5, 5}, {7, 5}, {0, len(r.Events) + 1}} {
		var wrong *MomentError
		if _, err := r.Stretch(events[0], events[1], 5); !errors.As(err, &wrong) {
			t.Errorf("%v: %v", events, err)
		}
	}
}
