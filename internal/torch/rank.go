package torch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// RankKind is a set of ranks whose parts of a model have the same sizes: they
// need the same memory.
type RankKind struct {
	Ranks    []int64
	Elements int64 // that each of them updates
}

// RankKinds returns the kinds of ranks that share the model's parameters, those
// that update most first; nil if all are equal.
func (t *Torch) RankKinds() []RankKind {
	f, ok := t.parallel.(*fsdp)
	if !ok {
		return nil
	}
	widths := make(map[int64]int64) // of all parameters, by their number of rows
	for _, g := range f.groups {
		for _, p := range g.params {
			widths[p.whole.Shape[0]] += product(p.whole.Shape[1:])
		}
	}
	lengths := slices.Sorted(maps.Keys(widths))
	return kindsOf(f.how.Ranks, func(rank int64) (string, int64) {
		how, elements := Sharding{Ranks: f.how.Ranks, Rank: rank}, int64(0)
		var key strings.Builder
		for _, n := range lengths {
			rows := how.rows(n)
			elements += rows * widths[n]
			fmt.Fprint(&key, rows, " ")
		}
		return key.String(), elements
	})
}

// RankKinds returns the kinds of ranks of a ZeroRedundancyOptimizer, those that
// update most first.
func (o *Optimizer) RankKinds() []RankKind {
	return kindsOf(int64(len(o.parts)), func(rank int64) (string, int64) {
		elements := int64(0)
		var key strings.Builder
		for _, p := range o.parts[rank] {
			elements += p.Numel()
			fmt.Fprint(&key, p.Shape, p.DType, " ")
		}
		return key.String(), elements
	})
}

// maxRankKinds is how many ranks are distinguished. Beyond that, the first one
// represents all.
const maxRankKinds = 4096

// kindsOf groups ranks by key.
func kindsOf(ranks int64, key func(rank int64) (string, int64)) []RankKind {
	if ranks > maxRankKinds {
		return nil
	}
	var out []RankKind
	at := make(map[string]int)
	for rank := range ranks {
		k, elements := key(rank)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, RankKind{Elements: elements})
		}
		out[i].Ranks = append(out[i].Ranks, rank)
	}
	slices.SortStableFunc(out, func(a, b RankKind) int { return int(min(1, max(-1, b.Elements-a.Elements))) })
	return out
}
