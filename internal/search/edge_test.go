package search

import (
	"errors"
	"slices"
	"testing"
)

// edgeAt is a trier for which batches up to one fit, but for some.
func edgeAt(edge int64, gaps ...int64) Trier {
	return func(batches []int64) ([]bool, error) {
		out := make([]bool, len(batches))
		for i, b := range batches {
			out[i] = b <= edge && !slices.Contains(gaps, b)
		}
		return out, nil
	}
}

func always(n int64) Guess { return func(int64, int64) int64 { return n } }

func TestEdgeGuess(t *testing.T) {
	for _, c := range []struct {
		name        string
		edge, guess int64
		o           Options
		want        int64
		probes      int // at the most
	}{
		{"right", 270, 270, Options{}, 270, 2},
		{"one too many", 269, 270, Options{}, 269, 2},
		{"one too few", 271, 270, Options{}, 271, 3},
		{"two too many", 268, 270, Options{}, 268, 4},
		{"ten too few", 280, 270, Options{}, 280, 9},
		{"ten too many", 260, 270, Options{}, 260, 9},
		{"far too many", 3, 1000, Options{}, 3, 20},
		{"nothing fits", 0, 100, Options{}, 0, 10},
		{"all fit", 1000, 990, Options{Most: 1000}, 1000, 8},
		{"multiples", 270, 270, Options{MultipleOf: 8}, 264, 2},
		{"two multiples off", 280, 270, Options{MultipleOf: 8}, 280, 5},
	} {
		for _, together := range []bool{false, true} {
			r, err := Edge(edgeAt(c.edge), always(c.guess), together, c.o)
			most := c.probes
			if together {
				most += 2
			}
			if err != nil || r.Largest != c.want || len(r.Order) > most {
				t.Errorf("%s, together %v: %d after %v, %v; want %d after %d", c.name, together, r.Largest, r.Order, err, c.want, c.probes)
			}
			if next := c.want + max(c.o.MultipleOf, 1); r.Largest > 0 && !r.Bounded && r.Probes[next] {
				t.Errorf("%s: %d fits", c.name, next)
			}
		}
	}
}

func TestEdgeProbes(t *testing.T) {
	r, err := Edge(edgeAt(100), always(300), false, Options{MaxProbes: 3})
	if !errors.Is(err, ErrProbes) || len(r.Order) != 3 {
		t.Errorf("%v after %v", err, r.Order)
	}
	boom := errors.New("boom")
	r, err = Edge(func([]int64) ([]bool, error) { return nil, boom }, always(5), false, Options{})
	if !errors.Is(err, boom) || r == nil {
		t.Errorf("%v", err)
	}
}

// TestEdgeGaps: what is answered fits and the next one does not, whatever the
// guess and the shape.
func TestEdgeGaps(t *testing.T) {
	for guess := int64(1); guess < 60; guess++ {
		try := edgeAt(40, 22, 23, 30, 37)
		r, err := Edge(try, always(guess), guess%2 == 0, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if at, _ := try([]int64{r.Largest, r.Largest + 1}); !at[0] || at[1] {
			t.Errorf("guess %d: %d is no edge, after %v", guess, r.Largest, r.Order)
		}
	}
}

// TestEdgeEnds: whatever is guessed, doubling and bisecting take about twice as many
// probes as the largest batch has bits.
func TestEdgeEnds(t *testing.T) {
	const bits, most = 20, 1 << 20
	for name, guess := range map[string]Guess{
		"one":              always(1),
		"most":             always(most),
		"what fits":        func(fits, _ int64) int64 { return fits },
		"one more":         func(fits, _ int64) int64 { return fits + 1 },
		"what fails":       func(_, fails int64) int64 { return fails },
		"one less":         func(_, fails int64) int64 { return fails - 1 },
		"one or the other": func(fits, fails int64) int64 { return (fits*7919+fails*104729)%most + 1 },
	} {
		for edge := int64(1); edge <= most; edge += edge/50 + 1 {
			for _, together := range []bool{false, true} {
				r, err := Edge(edgeAt(edge), guess, together, Options{Most: most, MaxProbes: 2*bits + 4})
				if err != nil || r.Largest != edge {
					t.Fatalf("%s, together %v: %d of %d after %d probes, %v", name, together, r.Largest, edge, len(r.Order), err)
				}
			}
		}
	}
}
