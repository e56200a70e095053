//go:build !race

package snapshot

import (
	"io"
	"runtime"
	"strings"
	"testing"
)

// TestReadProportionate feeds a gibibyte of opcodes, as a megabyte of gzip can
// hold, under the default limits: what a file may take depends on its size.
func TestReadProportionate(t *testing.T) {
	mark := "}\x94(" + str("stage") + str("START") + str("name") + str("x") + "u"
	segment := "}\x94(" + str("total_size") + "K\x01u"
	for _, test := range []struct{ name, before, again, after string }{
		{"values", "(", "N", ""},
		{"list items", "]", "Na", ""},
		{"lists", "(", "](NNe", ""},
		{"memo", "(", "]\x94", ""},
		{"dicts", "(", "}" + str("k") + "Ns", ""},
		{"one mark many times", "}" + str("external_annotations") + "](" + mark, "h\x00", "es."},
		{"one segment many times", "}" + str("segments") + "](" + segment, "h\x00", "es."},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := io.LimitReader(&endless{text: test.again}, 1<<30/int64(len(test.again))*int64(len(test.again)))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Read(io.MultiReader(strings.NewReader(head+test.before), body, strings.NewReader(test.after)), Limits{})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "no snapshot does that") {
				t.Errorf("got %v", err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<30 {
				t.Errorf("%d bytes were allocated", got)
			}
		})
	}
}
