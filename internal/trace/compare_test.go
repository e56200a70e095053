package trace

import (
	"fmt"
	"strings"
	"testing"
)

// steps is a program of n layers, in the language of scripts, on two lines
// each: enough to align traces by.
func steps(n int, change func(layer int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "alloc h%d %d\nalloc t%d %d\n", i, 1000+i, i, 2000+i)
		if change != nil {
			b.WriteString(change(i))
		}
		fmt.Fprintf(&b, "free t%d\n", i)
	}
	return b.String()
}

// in returns a change of one layer.
func in(layer int, text string) func(int) string {
	return func(i int) string {
		if i == layer {
			return text
		}
		return ""
	}
}

// describe writes where traces diverge: "+8" is an allocation of 8 bytes, "-8"
// its free; the first trace is before the bar, the second after it.
func describe(c *Comparison) string {
	var parts []string
	for _, s := range c.Stretches {
		var b strings.Builder
		for side := range 2 {
			if side == 1 {
				b.WriteString(" |")
			}
			for _, r := range c.Requests[side][s.From[side]:s.To[side]] {
				sign := "+"
				if r.Free {
					sign = "-"
				}
				fmt.Fprintf(&b, " %s%d", sign, r.Size)
			}
		}
		parts = append(parts, fmt.Sprintf("%d:%s", s.From[0], b.String()))
	}
	return strings.Join(parts, "; ")
}

func TestCompare(t *testing.T) {
	same := steps(20, nil)
	tests := []struct {
		name, a, b string
		want       string // of describe
		equal      int
		beyond     [2]int
	}{
		{"nothing", "", "", "", 0, [2]int{}},
		{"the same", same, same, "", 60, [2]int{}},
		{"one ends", steps(10, nil), same, "", 30, [2]int{0, 30}},
		{"one ends in a run of frees", "alloc a 8\nalloc b 9\nfree b", "alloc a 8\nalloc b 9\nfree a\nfree b", "", 3, [2]int{0, 1}},
		{"a temporary more", steps(20, in(9, "alloc x 7\nfree x\n")), same, "29: +7 -7 |", 60, [2]int{}},
		{"a temporary less", same, steps(20, in(9, "alloc x 7\nfree x\n")), "29: | +7 -7", 60, [2]int{}},
		{"another size", steps(20, in(9, "alloc x 7\n")), steps(20, in(9, "alloc x 5\n")), "29: +7 | +5", 60, [2]int{}},
		{"twice", steps(20, in(3, "alloc x 7\n")), steps(20, in(15, "alloc x 5\n")), "11: +7 |; 48: | +5", 60, [2]int{}},
		{"freed elsewhere", steps(20, in(9, "free h0\n")), steps(20, in(15, "free h0\n")), "30: -1000 |; 49: | -1000", 60, [2]int{}},
		{"frees in another order", same + "free h0\nfree h1\nfree h2", same + "free h2\nfree h0\nfree h1", "", 63, [2]int{}},
		{"a free more in a run", same + "free h0\nfree h1\nalloc z 3", same + "free h1\nfree h2\nfree h0\nalloc z 3", "62: | -1002", 63, [2]int{}},
		{
			"another allocation of that size is freed",
			"alloc a 8\nalloc b 8\n" + same + "free a\n" + strings.ReplaceAll(same, " ", " x"),
			"alloc a 8\nalloc b 8\n" + same + "free b\n" + strings.ReplaceAll(same, " ", " x"),
			"62: -8 | -8", 122,
			[2]int{},
		},
		{"nothing in common", "alloc a 1\nalloc b 2", "alloc a 3", "0: +1 +2 | +3", 0, [2]int{}},
		{"a difference at the end", same + "alloc x 7", same + "alloc x 5", "60: +7 | +5", 60, [2]int{}},
		{"a difference near the end", steps(20, in(19, "alloc x 7\n")), same, "59: +7 |", 60, [2]int{}},
		{"live before", "before w 8\n" + same + "free w", "before v 8\n" + same + "free v", "", 61, [2]int{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// Names stand for addresses, sizes are what matters.
			c := Compare(parseScript(t, named(test.a)), parseScript(t, named(test.b)))
			if got := describe(c); got != test.want {
				t.Errorf("they part at %q, want %q", got, test.want)
			}
			if c.Equal != test.equal || c.Beyond != test.beyond {
				t.Errorf("equal %d, beyond %v, want %d and %v", c.Equal, c.Beyond, test.equal, test.beyond)
			}
			if c.Differ() != (test.want != "") {
				t.Errorf("differ = %v", c.Differ())
			}
			for side, all := range c.Requests {
				n := c.Equal + c.Beyond[side]
				for _, s := range c.Stretches {
					n += s.To[side] - s.From[side]
				}
				if n != len(all) {
					t.Errorf("%d requests of %d are accounted for", n, len(all))
				}
			}
		})
	}
}

// named undoes what renaming a program's allocations did to its sizes.
func named(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		f := strings.Fields(line)
		for i := 2; i < len(f); i++ {
			f[i] = strings.TrimPrefix(f[i], "x")
		}
		b.WriteString(strings.Join(f, " ") + "\n")
	}
	return b.String()
}

func TestCompareReordered(t *testing.T) {
	program := "alloc a 8\nalloc b 8\nalloc c 8\n"
	c := Compare(parseScript(t, program+"free a\nfree b\nfree c"), parseScript(t, program+"free a\nfree c\nfree b"))
	if c.Differ() || len(c.Reordered) != 1 || c.Reordered[0] != 6 {
		t.Errorf("reordered at %v, want event 6", c.Reordered)
	}
	if c := Compare(parseScript(t, program), parseScript(t, program)); len(c.Reordered) > 0 {
		t.Errorf("reordered at %v, want nowhere", c.Reordered)
	}
}

// Realigning far behind a difference needs a larger window.
func TestCompareLongStretch(t *testing.T) {
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "alloc l%d %d\n", i, 5000+i)
	}
	c := Compare(parseScript(t, steps(9, nil)+long.String()+strings.ReplaceAll(steps(9, nil), "h", "i")), parseScript(t, steps(9, nil)+strings.ReplaceAll(steps(9, nil), "h", "i")))
	if len(c.Stretches) != 1 || c.Stretches[0].To[0]-c.Stretches[0].From[0] != 3000 || c.Equal != 54 {
		t.Errorf("stretches %v, equal %d", c.Stretches, c.Equal)
	}
}
