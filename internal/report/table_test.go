package report

import (
	"strings"
	"testing"
)

func TestCutLeft(t *testing.T) {
	const place = "transformers/models/gpt2/modeling_gpt2.py:233 forward"
	tests := []struct {
		in    string
		width int
		want  string
	}{
		{place, 60, place},
		{place, 53, place},
		{place, 52, "…/models/gpt2/modeling_gpt2.py:233 forward"},
		{place, 40, "…/gpt2/modeling_gpt2.py:233 forward"},
		{place, 20, "…/modeling_gpt2.py:…"},
		{"train.py:1 a/b", 8, "train.p…"},
		{"", 3, ""},
		{"abc", 0, "…"},
	}
	for _, test := range tests {
		if got := cutLeft(test.in, test.width); got != test.want {
			t.Errorf("cutLeft(%q, %d) = %q, want %q", test.in, test.width, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	tab := table{
		columns: []column{{title: "SIZE", right: true}, {title: "KIND"}, {title: "MADE BY", stretch: true}, {title: "FROM", stretch: true}},
		rows: []row{
			{cells: []string{"1.00 GiB", "activation", "a/long/path/to/model.py:12 forward", "train.py:1"}, below: []string{"x.py:1 f"}},
			{cells: []string{"8 B", "", "", ""}},
		},
	}
	var b strings.Builder
	tab.write(&b, 60)
	want := strings.Join([]string{
		"      SIZE  KIND        MADE BY                   FROM",
		"  1.00 GiB  activation  …/to/model.py:12 forward  train.py:1",
		"        x.py:1 f",
		"       8 B",
		"",
	}, "\n")
	if got := plainText(b.String()); got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
}

// plainText takes the styles off.
func plainText(s string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, s, _ = strings.Cut(after, "m")
	}
}
