package search

// Trier says which of some batches fit. It may try them at once.
type Trier func(batches []int64) (fits []bool, err error)

// Guess is the batch that is thought to be the largest that fits, given the
// largest that is known to (0 if none is) and the smallest above it that is
// known not to (0 if none is). A guess beyond what is known is put right.
type Guess func(fits, fails int64) int64

// Edge looks for a batch that fits while the next one does not, where every
// probe is dear: it tries the guess and the next larger batch first, and so
// needs two probes if the guess is right. Each wrong guess in a row is taken
// twice as far, and once the edge is between two known batches it is bisected
// as soon as a guess has not helped.
func Edge(try Trier, guess Guess, together bool, o Options) (*Found, error) {
	s, _, err := newSearcher(nil, o)
	if err != nil {
		return nil, err
	}
	e := &edge{searcher: s, tryAll: try, guess: guess, together: together, fails: s.most + 1, step: 1}
	err = e.run()
	s.result.Largest = e.fits * s.unit
	s.result.Bounded = err == nil && e.fits == s.most
	return s.result, err
}

// edge counts in units too.
type edge struct {
	*searcher
	tryAll      Trier
	guess       Guess
	together    bool
	fits, fails int64 // what is known; fails may be one beyond the bound
	guessed     int64
	step        int64 // how far beyond a known batch the next one is at least
	up, down    bool  // where the last guess was wrong
}

func (e *edge) run() error {
	for e.fits+1 < e.fails {
		n := e.next()
		batches := []int64{n}
		if e.together && e.step == 1 && n+1 < e.fails {
			batches = append(batches, n+1)
		}
		if err := e.probeAll(batches); err != nil {
			return err
		}
	}
	return nil
}

// next is the batch to try: the guess, or further than it if guesses were
// wrong in a row.
func (e *edge) next() int64 {
	known := e.fails
	if known > e.most {
		known = 0
	}
	n := min(max(e.guess(e.fits*e.unit, known*e.unit)/e.unit, e.fits), e.fails-1, e.most)
	e.guessed = n
	bounded := e.fits > 0 && e.fails <= e.most
	switch {
	case bounded && e.step > 2:
		n = e.fits + (e.fails-e.fits)/2
	case e.down:
		n = min(n, e.fails-e.step)
	case e.up:
		n = max(n, e.fits+e.step)
	}
	return min(max(n, e.fits+1, 1), e.fails-1)
}

// probeAll tries batches in order and keeps what is learned. What was tried
// next to a batch that fails is no news.
func (e *edge) probeAll(units []int64) error {
	if e.budget > 0 && len(e.result.Order)+len(units) > e.budget {
		if units = units[:max(e.budget-len(e.result.Order), 0)]; len(units) == 0 {
			return ErrProbes
		}
	}
	batches := make([]int64, len(units))
	for i, n := range units {
		batches[i] = n * e.unit
	}
	fits, err := e.tryAll(batches)
	for i, ok := range fits {
		e.result.Probes[batches[i]] = ok
		e.result.Order = append(e.result.Order, batches[i])
	}
	e.learn(units[:len(fits)], fits)
	return err
}

// learn narrows down where the edge is, and says whether the guess was wrong.
// A batch that fits counts, even above one that does not.
func (e *edge) learn(units []int64, fits []bool) {
	var up, down bool
	for i, n := range units {
		switch {
		case fits[i] && n > e.fits:
			// A guess that is just above what is known each time is as wrong as one below.
			up, down = n > e.guessed || n == e.fits+1, false
			e.fits = n
			if e.fails <= n {
				e.fails = e.most + 1
			}
		case !fits[i] && n < e.fails && n > e.fits:
			e.fails = n
			down = n <= e.guessed
		}
	}
	if (up && e.up) || (down && e.down) {
		e.step *= 2
	}
	e.up, e.down = up, down
}
