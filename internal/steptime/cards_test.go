package steptime

import (
	"math"
	"strings"
	"testing"

	"memorymark/internal/gpu"
)

// A card of which kernels were timed goes by them, any other by the nearest of its
// architecture, with a wider range.
func TestNearest(t *testing.T) {
	for id, want := range map[string]string{"h100": "h100", "a10": "rtx-3090", "l4": "l40s", "rtx-4070": "rtx-4090", "rtx-2080-ti": "t4", "a100-40gb": "a100-80gb"} {
		card, err := gpu.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		if got := nearest(card); got.ID != want {
			t.Errorf("%s goes by %s, want %s", id, got.ID, want)
		}
		own := id == want
		if own == strings.HasPrefix(Compared(card), "no times") {
			t.Errorf("%s: %s", id, Compared(card))
		}
		var large Launches
		large.Add(Product, FP16, false, 8192, 8192, 8192)
		part := large.Busy(card, 0)
		if r := RangeOf(part); own != (math.Abs(r.High/part.Device-1-nearest(card).off) < 1e-3) || r.Low >= part.Device {
			t.Errorf("%s: %+v, range %+v", id, part, r)
		}
	}
}

// Boards that promise more for their watts reach less of it: an L4 less than an L40S.
func TestPower(t *testing.T) {
	find := func(id string) reached {
		card, err := gpu.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		return reachedBy(card)
	}
	if l4, l40s, strong := find("l4"), find("l40s"), find("rtx-4080"); l4.half >= l40s.half || l40s.half >= strong.half {
		t.Errorf("of their rates, an L4 reaches %.2f, an L40S %.2f, an RTX 4080 %.2f", l4.half, l40s.half, strong.half)
	}
	row := nearest(h200())
	few := *row.Card
	few.BoardWatts /= 2
	if got := reachedBy(&few); got.half >= row.half {
		t.Errorf("with half of the watts it reaches %.2f of its rate, with all %.2f", got.half, row.half)
	}
}

// What waits for the host may be much shorter on another server, but no shorter than
// what the card takes.
func TestHostRange(t *testing.T) {
	r := RangeOf(Busy{Device: 1, Host: 4, Off: 0.1})
	if math.Abs(r.Low-4/hostFaster) > 0.05 || math.Abs(r.High-4*hostSlower) > 0.05 {
		t.Errorf("4 s of the host: %+v", r)
	}
	if r := RangeOf(Busy{Device: 3.9, Host: 4, Off: 0.39}); r.Low < 3.9/1.1 {
		t.Errorf("4 s of the host and 3.9 s of the card: %+v", r)
	}
	w := Work{Launches: []Asked{{Kind: Kernel, Size: []float64{1e9}}}, Order: []int{0}}
	seconds, r := w.Seconds(h200()), w.Range(h200())
	if !r.Holds(seconds) || r.Low > seconds/1.1 || r.High < 1.1*seconds {
		t.Errorf("%g s, range %+v", seconds, r)
	}
}
