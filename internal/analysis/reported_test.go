package analysis

import (
	"encoding/json"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// TestReportedRows compares an answer of a real H200 with predictions: its peaks and its largest
// batch are exact, and nothing in a row tells who asked.
func TestReportedRows(t *testing.T) {
	data := testmachine.ReadFile(t, "testdata/gpt2-h200.json")
	read := func(text string) *Recorded {
		t.Helper()
		var r Recorded
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return &r
	}
	rows, err := read(string(data)).Rows("reported", nil)
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[string]int)
	for _, r := range rows {
		count[r.Comparison]++
		if r.Card != "h200" || r.PyTorch != "2.11" || r.Transformers != "5.17" || r.Parameters != 124439808 || !strings.HasPrefix(r.Recording, "gpt2_b") {
			t.Errorf("%+v", r)
		}
		if r.SignedError != 0 && r.Comparison != "step time, reported" {
			t.Errorf("%s of %s is %g off", r.Comparison, r.Recording, r.SignedError)
		}
		if strings.Contains(strings.Join([]string{r.Comparison, r.Recording, r.Source}, " "), "secret-run") {
			t.Errorf("%+v has the id of the question", r)
		}
	}
	for what, want := range map[string]int{"peak allocated, reported": 1, "peak reserved, reported": 1, "step time, reported": 7, "largest batch, reported": 1} {
		if count[what] != want {
			t.Errorf("%d rows of %s, want %d", count[what], what, want)
		}
	}

	// Too low is below 0.
	low := read(strings.ReplaceAll(string(data), `"peak_allocated":`, `"peak_allocated":9`))
	if rows, err := low.Rows("", nil); err != nil || rows[0].SignedError >= 0 {
		t.Errorf("of a peak that was higher: %+v, %v", rows, err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"engine":"measured"`, `"engine":"predicted"`, "measured"},
		{`"device":"cuda"`, `"device":"cpu"`, "CUDA"},
		{`"gpu_name":"NVIDIA H200"`, `"gpu_name":"/home/me/card.json"`, "catalog"},
		{`"purpose":"`, `"purpose":"not `, "nothing to compare"},
		{`"batch":4`, `"batch":-4`, "batch"},
	} {
		changed := strings.ReplaceAll(string(data), c.from, c.to)
		if changed == string(data) {
			t.Fatalf("the answer has no %s", c.from)
		}
		r := read(changed)
		if c.want == "nothing to compare" {
			r.Largest = 0
		}
		if rows, err := r.Rows("", nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %s: %v, %v; want an error with %q", c.to, rows, err, c.want)
		}
	}
}
