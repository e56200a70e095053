package workload

import (
	"encoding/json"
	"testing"
)

func TestReadLengths(t *testing.T) {
	for _, text := range []string{"5\n3\n\n 5 \n9", "[9, 5, 5, 3]", `{"3": 1, "5": 2, "9": 1}`} {
		l, err := ReadLengths([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if l.Samples() != 4 || l.Shortest() != 3 || l.Longest() != 9 || l.Mean() != 5.5 {
			t.Errorf("%q: %+v", text, l)
		}
		for i, want := range []int64{3, 5, 5, 9} {
			if got := l.At(int64(i)); got != want {
				t.Errorf("%q: sample %d has %d tokens, want %d", text, i, got, want)
			}
		}
		if written, _ := json.Marshal(l); string(written) != `{"3":1,"5":2,"9":1}` {
			t.Errorf("%q is written as %s", text, written)
		}
		if cut := l.cutTo(5); cut.Samples() != 4 || cut.Longest() != 5 || cut.Mean() != 4.5 {
			t.Errorf("%q, cut to 5: %+v", text, cut)
		}
	}
	for _, text := range []string{"", "5\nfive", "-1", "0", "[1, 2", `{"a": 1}`, "1048577"} {
		if _, err := ReadLengths([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// Lengths set the sequence, and a mask unless there must be none.
func TestSettleLengths(t *testing.T) {
	for text, want := range map[string]struct {
		sequence, longest int64
		mask              Mask
		varied            bool
	}{
		`{"model":"bert","lengths":[3,9,200]}`:                             {200, 200, Padded, true},
		`{"model":"bert","sequence":[3,9,200]}`:                            {200, 200, Padded, true},
		`{"model":"bert","lengths":[3,9,200],"sequence":64}`:               {64, 64, Padded, true},
		`{"model":"bert","lengths":[3,9,20],"sequence":64}`:                {20, 20, Padded, true},
		`{"model":"bert","lengths":[3,9],"attention_mask":"none"}`:         {9, 9, NoMask, true},
		`{"model":"lm-small","lengths":[3,9]}`:                             {9, 9, NoMask, true},
		`{"model":"bert","lengths":[9,9]}`:                                 {9, 9, Padded, false},
		`{"model":"bert","lengths":[3,9000],"sequence":64,"packing":true}`: {64, 9000, NoMask, false},
		`{"model":"gpt2","lengths":{"3":5,"100":1},"sequence":8}`:          {8, 8, Padded, true},
	} {
		w, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if w.Sequence != want.sequence || w.Lengths.Longest() != want.longest || w.AttentionMask != want.mask || w.Varied() != want.varied {
			t.Errorf("%s: sequence %d, longest %d, mask %s, varied %v", text, w.Sequence, w.Lengths.Longest(), w.AttentionMask, w.Varied())
		}
	}
}
