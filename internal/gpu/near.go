package gpu

import (
	"cmp"
	"slices"
	"strings"
)

// near returns the ids of the catalog that look most like a name: those that
// share a beginning or lie within a few typing errors.
func near(name string) []string {
	const most = 4
	type candidate struct {
		id       string
		distance int
	}
	var found []candidate
	for _, c := range load() {
		best := len(name) + len(c.ID)
		for _, known := range append([]string{c.ID}, c.Aliases...) {
			d := distance(name, known)
			if strings.HasPrefix(known, name) || strings.HasPrefix(name, known) {
				d = min(d, 1)
			}
			best = min(best, d)
		}
		if best <= 2 || best*3 <= len(name) {
			found = append(found, candidate{c.ID, best})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var ids []string
	for _, c := range found[:min(len(found), most)] {
		ids = append(ids, c.id)
	}
	return ids
}

// distance is the number of letters to insert, delete or change to turn one
// word into another (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
