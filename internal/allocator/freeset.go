package allocator

import (
	"math/bits"
	"slices"
)

// freeSet is the free blocks of a stream in a pool, ordered by size and then
// address: best fit is its lower bound. It is a list of short sorted runs, so
// that neither a few blocks (the usual case) nor a hundred thousand (a hostile
// file) make an insertion slow.
type freeSet struct {
	runs  [][]freeKey // none is empty
	spare [][]freeKey // emptied runs, kept for reuse
}

type freeKey struct {
	size  int64
	addr  uint64
	block blockIndex
}

func (k freeKey) before(size int64, addr uint64) bool {
	return k.size < size || k.size == size && k.addr < addr
}

// position is a position in a freeSet.
type position struct{ run, index int }

const runLength = 128

// lowerBound is the first position whose key is not before (size, addr).
func (s *freeSet) lowerBound(size int64, addr uint64) position {
	lo, hi := 0, len(s.runs)
	for lo < hi {
		mid := (lo + hi) / 2
		if run := s.runs[mid]; run[len(run)-1].before(size, addr) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(s.runs) {
		return position{lo, 0}
	}
	// The search takes as many turns for every key and has no branch that the
	// processor could guess wrong: it is what most of the allocator's time goes
	// into.
	run := s.runs[lo]
	i := 0
	for n := len(run); n > 0; {
		half := (n + 1) / 2
		i += half * run[i+half-1].beforeBit(size, addr)
		n -= half
	}
	return position{lo, i}
}

// beforeBit is 1 if the key is before (size, addr), else 0: what is borrowed when
// that is subtracted from the key.
func (k freeKey) beforeBit(size int64, addr uint64) int {
	_, borrow := bits.Sub64(k.addr, addr, 0)
	_, borrow = bits.Sub64(uint64(k.size), uint64(size), borrow)
	return int(borrow)
}

func (s *freeSet) has(at position) bool    { return at.run < len(s.runs) }
func (s *freeSet) get(at position) freeKey { return s.runs[at.run][at.index] }

func (s *freeSet) next(at position) position {
	if at.index+1 < len(s.runs[at.run]) {
		return position{at.run, at.index + 1}
	}
	return position{at.run + 1, 0}
}

// previous is the position before at; ok is false at the beginning.
func (s *freeSet) previous(at position) (p position, ok bool) {
	if at.index > 0 {
		return position{at.run, at.index - 1}, true
	}
	if at.run == 0 {
		return at, false
	}
	return position{at.run - 1, len(s.runs[at.run-1]) - 1}, true
}

func (s *freeSet) insert(k freeKey) {
	at := s.lowerBound(k.size, k.addr)
	if at.run == len(s.runs) {
		if at.run == 0 {
			s.runs = append(s.runs, append(s.newRun(), k))
			return
		}
		at = position{at.run - 1, len(s.runs[at.run-1])}
	}
	if len(s.runs[at.run]) == runLength {
		at = s.split(at)
	}
	s.runs[at.run] = slices.Insert(s.runs[at.run], at.index, k)
}

// split halves the run of a position and returns where the position is then.
func (s *freeSet) split(at position) position {
	run := s.runs[at.run]
	upper := append(s.newRun(), run[runLength/2:]...)
	s.runs[at.run] = run[:runLength/2]
	s.runs = slices.Insert(s.runs, at.run+1, upper)
	if at.index > runLength/2 {
		return position{at.run + 1, at.index - runLength/2}
	}
	return at
}

func (s *freeSet) remove(at position) {
	run := slices.Delete(s.runs[at.run], at.index, at.index+1)
	s.runs[at.run] = run
	if len(run) == 0 {
		s.runs = slices.Delete(s.runs, at.run, at.run+1)
		s.spare = append(s.spare, run)
	}
}

func (s *freeSet) newRun() []freeKey {
	if n := len(s.spare); n > 0 {
		run := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return run
	}
	return make([]freeKey, 0, 4) // many sets never hold more
}
