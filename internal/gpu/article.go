package gpu

import (
	"strings"
	"unicode"
)

// WithArticle puts a or an before the name of a card. The first word is read
// letter by letter if it has capitals or digits after the first: an RTX, an
// H200, but a Tesla.
func WithArticle(name string) string {
	word, _, _ := strings.Cut(name, " ")
	vowels := "aeio"
	if len(word) < 2 || strings.ContainsFunc(word[1:2], func(r rune) bool { return unicode.IsUpper(r) || unicode.IsDigit(r) }) {
		vowels = "aefhilmnorsx8"
	}
	if word != "" && strings.Contains(vowels, strings.ToLower(word[:1])) {
		return "an " + name
	}
	return "a " + name
}
