package trace

import (
	"cmp"
	"slices"
)

// Group is a set of allocations that have something in common.
type Group[K comparable] struct {
	Key   K
	Bytes int64
	Count int
}

// GroupBy groups allocations by a key; the group with the most bytes comes
// first, and equals keep the order of their first allocation.
func GroupBy[K comparable](lifetimes []Lifetime, key func(*Lifetime) K) []Group[K] {
	index := make(map[K]int)
	var groups []Group[K]
	for i := range lifetimes {
		k := key(&lifetimes[i])
		g, ok := index[k]
		if !ok {
			g = len(groups)
			index[k] = g
			groups = append(groups, Group[K]{Key: k})
		}
		groups[g].Bytes += lifetimes[i].Size
		groups[g].Count++
	}
	slices.SortStableFunc(groups, func(a, b Group[K]) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Count, a.Count))
	})
	return groups
}

// Site is where an allocation was made and its purpose. The stack alone is not
// enough: all of backward runs on threads that have no Python stack, and what
// was live before the recording has none either.
type Site struct {
	Stack  StackID
	For    Category
	Before bool // live before the recording
}

// BySite is a key for GroupBy.
func BySite(l *Lifetime) Site { return Site{l.Stack, l.For, l.Alloc < 0} }

// BySize is a key for GroupBy.
func BySize(l *Lifetime) int64 { return l.Size }

// ByCategory is a key for GroupBy.
func ByCategory(l *Lifetime) Category { return l.For }
