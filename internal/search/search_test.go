package search

import (
	"errors"
	"testing"
)

func upTo(limit int64) Prober { return func(n int64) (bool, error) { return n <= limit, nil } }

// TestEdge holds that the answer is always an edge, whatever fits and whatever
// does not.
func TestEdge(t *testing.T) {
	odd := func(n int64) (bool, error) { return n < 50 || n < 80 && n%3 == 0, nil }
	for name, search := range map[string]func(Prober, Options) (*Found, error){"Bisect": Bisect, "NearestBelow": NearestBelow} {
		for start := int64(1); start < 120; start++ {
			r, err := search(odd, Options{Start: start})
			if err != nil {
				t.Fatal(err)
			}
			fits, _ := odd(r.Largest)
			next, seen := r.Probes[r.Largest+1]
			if !fits || next || !seen {
				t.Errorf("%s from %d: %d is not an edge that was probed on both sides (%v)", name, start, r.Largest, r.Order)
			}
		}
	}
}

func TestFailures(t *testing.T) {
	broken := errors.New("driver crashed")
	if _, err := Bisect(func(n int64) (bool, error) { return true, broken }, Options{}); !errors.Is(err, broken) {
		t.Errorf("a failure came back as %v", err)
	}
	r, err := NearestBelow(upTo(1000), Options{Start: 1, MaxProbes: 5})
	if !errors.Is(err, ErrProbes) || r.Largest == 0 || r.Largest > 1000 || !r.Probes[r.Largest] {
		t.Errorf("after 5 probes: %+v, %v", r, err)
	}
	if _, err := Bisect(upTo(9), Options{Most: 7, MultipleOf: 8}); err == nil {
		t.Error("no multiple of 8 is at most 7, and no error")
	}
}

func TestNearestBelow(t *testing.T) {
	// Fits up to 50, then only multiples of 3 up to 80.
	odd := func(n int64) (bool, error) { return n <= 50 || n <= 80 && n%3 == 0, nil }
	for start, want := range map[int64]int64{79: 78, 78: 78, 77: 75, 100: 78, 49: 51, 51: 51, 1: 63} {
		r, err := NearestBelow(odd, Options{Start: start})
		if err != nil {
			t.Fatal(err)
		}
		if r.Largest != want {
			t.Errorf("from %d: %d, want %d (%v)", start, r.Largest, want, r.Order)
		}
	}
	r, err := NearestBelow(upTo(1<<30), Options{Start: 1, MaxProbes: 2*30 + walkSteps})
	if err != nil || r.Largest != 1<<30 {
		t.Errorf("far above the start: %d after %d probes, %v", r.Largest, len(r.Order), err)
	}
	r, err = NearestBelow(upTo(0), Options{Start: 3})
	if err != nil || r.Largest != 0 {
		t.Errorf("nothing fits: %+v, %v", r, err)
	}
	r, err = NearestBelow(upTo(100), Options{Start: 3, Most: 16, MultipleOf: 8})
	if err != nil || r.Largest != 16 || !r.Bounded {
		t.Errorf("bounded: %+v, %v", r, err)
	}
}

func TestBisect(t *testing.T) {
	for _, limit := range []int64{0, 1, 2, 3, 7, 8, 100, 1000} {
		for _, start := range []int64{0, 1, 5, 64, 5000} {
			r, err := Bisect(upTo(limit), Options{Start: start})
			if err != nil || r.Largest != limit {
				t.Errorf("limit %d from %d: %+v, %v", limit, start, r, err)
			}
		}
	}
	r, err := Bisect(upTo(100), Options{Start: 9, MultipleOf: 8})
	if err != nil || r.Largest != 96 {
		t.Errorf("in multiples of 8: %+v, %v", r, err)
	}
	r, err = Bisect(upTo(1<<50), Options{Start: 9, Most: 100})
	if err != nil || r.Largest != 100 || !r.Bounded {
		t.Errorf("bounded: %+v, %v", r, err)
	}
}
