package gpu

import (
	"strings"
	"testing"
)

func TestWithArticle(t *testing.T) {
	for _, want := range []string{
		"a Tesla T4", "an RTX 5090", "an H200", "a GH200", "a B200", "an A100", "a GeForce RTX 3090", "a Half of an A100",
		"an Orin", "a my-card.json", "an i-card.json", "a Übercard", "a ",
	} {
		_, name, _ := strings.Cut(want, " ")
		if got := WithArticle(name); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, c := range All() {
		if got := WithArticle(c.Name); got != "an "+c.Name {
			t.Errorf("%q", got)
		}
	}
}
