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

// plainText removes the styles.
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

// If a table is too wide, spare columns are left out and sentences continue in
// the next line; nothing is wider than the limit.
func TestTableAdapts(t *testing.T) {
	table := func() *table {
		return &table{
			columns: []column{{title: "ID"}, {title: "SECOND", spare: 1}, {title: "FIRST", spare: 2}, {title: "", wraps: true}},
			rows:    []row{{cells: []string{"a-name-of-some-length", "spare-but-kept-longer", "gone-first", "a sentence that goes on for longer than there is room"}}},
		}
	}
	for _, c := range []struct {
		width     int
		has, lost []string
		lines     int
	}{
		{200, []string{"FIRST", "SECOND"}, nil, 2},
		{90, []string{"SECOND"}, []string{"FIRST"}, 3},
		{40, []string{"ID"}, []string{"FIRST", "SECOND"}, 5},
	} {
		var b strings.Builder
		table().write(&b, c.width)
		got := b.String()
		for _, line := range strings.Split(got, "\n") {
			if textWidth(line) > c.width {
				t.Errorf("wider than %d: %q", c.width, line)
			}
		}
		for _, title := range c.has {
			if !strings.Contains(got, title) {
				t.Errorf("at %d there is no %s:\n%s", c.width, title, got)
			}
		}
		for _, title := range c.lost {
			if strings.Contains(got, title) {
				t.Errorf("at %d there is %s:\n%s", c.width, title, got)
			}
		}
		if n := strings.Count(got, "\n"); n != c.lines {
			t.Errorf("%d lines at %d:\n%s", n, c.width, got)
		}
	}
}

// Speeds have enough digits to differ.
func TestSpeedsDiffer(t *testing.T) {
	same := func(x float64) float64 { return x }
	for _, c := range []struct {
		in   []float64
		want string
	}{
		{[]float64{0.8812, 0.9034, 0}, "0.8812 0.9034 "},
		{[]float64{12.43, 1.004}, "12.43 1.00"},
		{[]float64{160.1, 229.2}, "160.1 229.2"},
		{[]float64{20493.4, 999}, "20,493 999"},
	} {
		if got := strings.Join(speeds(c.in, same), " "); got != c.want {
			t.Errorf("%v is written as %q", c.in, got)
		}
	}
}

// What is in a cell is on its row.
func TestTableRows(t *testing.T) {
	tab := table{columns: []column{{title: "SIZE"}, {title: "MADE BY", stretch: true}}, rows: []row{
		{cells: []string{"1 B", "a.py\n9 GiB  b.py\t1"}, below: []string{"called by\n9 GiB  c.py"}},
	}}
	var b strings.Builder
	tab.write(&b, 80)
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); len(lines) != 3 {
		t.Errorf("%d lines of a title, a row and what is below it:\n%s", len(lines), b.String())
	}
}
