// Package nearest finds what was probably meant by a word that is not known.
package nearest

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// To returns the known words that are near to one that is not, the nearest
// first and four at most. Case and punctuation do not count. A word is near if
// it has the same letters, if one is the beginning of the other, if a third of
// its letters would have to change at most, or if a part of it begins a part of
// the other, as of "seq-len" and "sequence".
func To(word string, known []string) []string {
	type candidate struct {
		word      string
		rank, far int
	}
	var near []candidate
	for _, k := range known {
		if rank, far := compare(word, k); rank < unlike {
			near = append(near, candidate{k, rank, far})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.far, b.far)) })
	var out []string
	for _, c := range near[:min(len(near), 4)] {
		out = append(out, c.word)
	}
	return out
}

// Meant returns the known word that was written in another way, "" if there is
// none: To is for lists, in which a word may be that is only somewhat like it.
func Meant(word string, known []string) string {
	near := To(word, known)
	if len(near) == 0 {
		return ""
	}
	rank, far := compare(word, near[0])
	if rank > misspelt || rank == misspelt && far > 1 && far*3 > len(letters(word)) {
		return ""
	}
	return near[0]
}

// How like two words are.
const (
	same   = iota
	longer // or shorter
	misspelt
	related
	unlike
)

// longestWord is longer than any name. What is longer is not compared, letter by
// letter, with all of them.
const longestWord = 200

func compare(a, b string) (rank, far int) {
	if len(a) > longestWord {
		return unlike, len(a)
	}
	x, y := letters(a), letters(b)
	far = edits(x, y)
	switch {
	case x == "":
		return unlike, far
	case sorted(x) == sorted(y):
		return same, far
	case strings.HasPrefix(x, y), strings.HasPrefix(y, x):
		return longer, far
	case far <= 2, far*3 <= len(x):
		return misspelt, far
	case shareAPart(a, b):
		return related, far
	default:
		return unlike, far
	}
}

// shareAPart reports whether a part of a word begins a part of another.
func shareAPart(a, b string) bool {
	const least = 3 // letters that say something
	return slices.ContainsFunc(parts(a), func(p string) bool {
		return slices.ContainsFunc(parts(b), func(q string) bool {
			return min(len(p), len(q)) >= least && (strings.HasPrefix(p, q) || strings.HasPrefix(q, p))
		})
	})
}

func parts(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func letters(s string) string { return strings.Join(parts(s), "") }

func sorted(s string) string {
	b := []byte(s)
	slices.Sort(b)
	return string(b)
}

// edits is the number of letters to insert, delete or change to turn one word
// into another (Levenshtein).
func edits(a, b string) int {
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
