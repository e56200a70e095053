package steptime

import (
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
		if r := RangeOf(card, 1); own != (r.High == 1+nearest(card).off) || r.Low >= 1 {
			t.Errorf("%s: range %+v", id, r)
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
