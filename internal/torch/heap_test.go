package torch

import "testing"

// A process that ended leaves what it was made of, and nothing of what was in it.
func TestSlab(t *testing.T) {
	var s slab[int]
	var first *int
	for i := range slabLength * (keptSlabs + 2) {
		x := s.next()
		if *x != 0 {
			t.Fatalf("value %d is %d", i, *x)
		}
		*x = i + 1
		if i == 0 {
			first = x
		}
	}
	if len(s.kept) != keptSlabs {
		t.Errorf("%d slabs are kept", len(s.kept))
	}
	s.reset()
	if x := s.next(); x != first || *x != 0 {
		t.Errorf("begins with %d anew", *x)
	}
	if many := s.take(slabLength + 1); len(many) != slabLength+1 || cap(many) != len(many) {
		t.Errorf("%d in a row, and room for %d", len(many), cap(many))
	}
	if none := s.take(0); none == nil || len(none) != 0 {
		t.Errorf("none are %v", none)
	}
}
