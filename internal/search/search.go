// Package search finds the largest batch that fits, given something that can
// be probed: a simulation, or a GPU.
package search

import (
	"fmt"
	"math/bits"
)

// Prober says whether a batch fits. An error ends the search: it is any
// failure that is not "too big".
type Prober func(batch int64) (fits bool, err error)

// Options guide a search. The zero value searches from 1 without a bound.
type Options struct {
	Start      int64 // where the edge is thought to be; 0 is 1
	Most       int64 // never probe beyond; 0 is no bound
	MultipleOf int64 // only multiples count; 0 is 1
	MaxProbes  int   // give up improving after this many; 0 is no bound
}

// Found is the outcome of a search.
type Found struct {
	Largest int64          // 0 if not even the smallest fits
	Bounded bool           // Most fits: there may be larger ones
	Probes  map[int64]bool // every batch that was tried, and whether it fitted
	Order   []int64        // in which order
}

// ErrProbes is returned with the best answer so far when MaxProbes ran out.
var ErrProbes = fmt.Errorf("out of probes")

// Bisect looks for an edge between two powers of two: the lower one fits, the
// higher one does not. Start says where to look for them.
func Bisect(probe Prober, o Options) (*Found, error) {
	s, start, err := newSearcher(probe, o)
	if err != nil {
		return nil, err
	}
	fits, fails, err := s.powers(int64(1) << (bits.Len64(uint64(start)) - 1))
	if err == nil {
		fits, err = s.bisect(fits, fails)
	}
	s.result.Largest = fits * s.unit
	s.result.Bounded = err == nil && fits == s.most
	return s.result, err
}

// powers finds two neighbouring powers of two: one that fits (0 if none does), and
// the next, which does not (one beyond the bound if all do).
func (s *searcher) powers(n int64) (fits, fails int64, err error) {
	ok, err := s.try(n)
	for ok && err == nil {
		if 2*n > s.most {
			return n, s.most + 1, nil
		}
		if ok, err = s.try(2 * n); ok {
			n *= 2
		} else {
			return n, 2 * n, err
		}
	}
	for !ok && err == nil && n > 1 {
		n /= 2
		ok, err = s.try(n)
	}
	if !ok {
		return 0, 1, err
	}
	return n, 2 * n, err
}

// NearestBelow looks for the edge next to Start, at first one by one: downwards
// for a size that fits, or upwards while the next one does. It suits a
// start that is known to be close, where fitting is not monotonic and
// bisecting would jump over edges.
func NearestBelow(probe Prober, o Options) (*Found, error) {
	s, start, err := newSearcher(probe, o)
	if err != nil {
		return nil, err
	}
	fits, err := s.walk(start)
	s.result.Largest = fits * s.unit
	s.result.Bounded = err == nil && fits == s.most
	return s.result, err
}

// walkSteps is how far NearestBelow goes one by one before it takes longer
// steps: a start that is far off is not worth a probe for every size.
const walkSteps = 16

func (s *searcher) walk(n int64) (int64, error) {
	ok, err := s.try(n)
	fails := n + 1
	for step, tried := int64(1), 1; !ok && err == nil && n > 1; tried++ {
		if tried > walkSteps {
			step *= 2
		}
		fails = n
		n = max(n-step, 1)
		ok, err = s.try(n)
	}
	switch {
	case err != nil || !ok:
		return 0, err
	case fails > n+1:
		return s.bisect(n, fails)
	}
	return s.climb(n)
}

// climb goes up from a size that fits, until one does not.
func (s *searcher) climb(n int64) (int64, error) {
	for step, tried := int64(1), 1; n < s.most; tried++ {
		if tried > walkSteps {
			step *= 2
		}
		next := min(n+step, s.most)
		ok, err := s.try(next)
		switch {
		case err != nil:
			return n, err
		case !ok:
			return s.bisect(n, next)
		}
		n = next
	}
	return n, nil
}

// searcher counts in units of MultipleOf.
type searcher struct {
	probe  Prober
	unit   int64
	most   int64
	budget int // 0 is no bound
	result *Found
}

func newSearcher(probe Prober, o Options) (s *searcher, start int64, err error) {
	s = &searcher{
		probe: probe, unit: max(o.MultipleOf, 1), most: 1 << 40, budget: o.MaxProbes,
		result: &Found{Probes: make(map[int64]bool)},
	}
	if o.Most > 0 {
		s.most = o.Most / s.unit
	}
	if s.most == 0 {
		return nil, 0, fmt.Errorf("no multiple of %d is at most %d", s.unit, o.Most)
	}
	return s, min(max(o.Start/s.unit, 1), s.most), nil
}

func (s *searcher) try(n int64) (bool, error) {
	batch := n * s.unit
	if fits, ok := s.result.Probes[batch]; ok {
		return fits, nil
	}
	if s.budget > 0 && len(s.result.Order) >= s.budget {
		return false, ErrProbes
	}
	fits, err := s.probe(batch)
	if err != nil {
		return false, fmt.Errorf("probe batch %d: %w", batch, err)
	}
	s.result.Probes[batch] = fits
	s.result.Order = append(s.result.Order, batch)
	return fits, nil
}

// bisect closes in on the edge.
func (s *searcher) bisect(fits, fails int64) (int64, error) {
	for fits+1 < fails {
		mid := fits + (fails-fits)/2
		ok, err := s.try(mid)
		if err != nil {
			return fits, err
		}
		if ok {
			fits = mid
		} else {
			fails = mid
		}
	}
	return fits, nil
}
