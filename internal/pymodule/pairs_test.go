package pymodule_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/testmachine"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload"
)

var (
	update    = flag.Bool("update", false, "rewrite docs/families.md")
	onlyPairs = flag.String("pairs", "", "pairs whose names contain this, with the requests around the first difference")
)

// pair is a small model of a family with a head (testdata/truth/pairs/small.py), and what a
// process of MemoryMark's prober requested on an emulated H200 (record.py there).
type pair struct {
	ID         string // head/model_type/class
	Workload   json.RawMessage
	Error      string // why there was no such process
	Parameters int64
	Versions   struct{ Torch, Transformers string }
	Steps      []struct{ Allocated, Reserved int64 }
	Requests   []int64
}

// outcome is how a prediction compares with that process.
type outcome struct {
	pair      *pair
	refused   string  // why there is no prediction
	peaks     bool    // of every step are equal, and the parameters
	events    bool    // every request is equal
	off       float64 // of the peak that is furthest off
	different string  // the first request that is
	steps     string  // peaks of both
}

// readPairs reads those of the repository, or of a file that make families has written.
func readPairs(t *testing.T) []*pair {
	t.Helper()
	pairs := tracetest.Lines[*pair](t, cmp.Or(os.Getenv("MEMORYMARK_PAIRS"), truth+"pairs/pairs.jsonl.xz"))
	return slices.DeleteFunc(pairs, func(p *pair) bool { return !strings.Contains(p.ID, *onlyPairs) })
}

// TestPairs predicts a small model of each pair of family and head that transformers'
// mappings have, in the way of every workload, and compares it with a process of it. What
// comes of each is in docs/families.md, and may not get worse.
func TestPairs(t *testing.T) {
	library(t)
	var outcomes []*outcome
	for _, p := range readPairs(t) {
		o := p.compare()
		outcomes = append(outcomes, o)
		if *onlyPairs != "" {
			t.Logf("%s: peaks equal %v, events equal %v, off %+.3f%%\n%s%s%s", p.ID, o.peaks, o.events, o.off*100, o.refused, cond(o.peaks, "", o.steps+"\n"), o.different)
		}
	}
	if *onlyPairs != "" {
		return
	}
	page := pageOf(outcomes)
	path := "../../docs/families.md"
	if *update {
		testmachine.WriteFile(t, path, page)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(page, want) {
		t.Errorf("docs/families.md is not what comes of the pairs (%v); see the difference with go test ./internal/pymodule -run TestPairs -update", err)
	}
}

func cond(b bool, x, y string) string {
	if b {
		return x
	}
	return y
}

func (p *pair) compare() *outcome {
	o := &outcome{pair: p}
	if p.Error != "" {
		return o
	}
	refuse := func(err error) *outcome {
		o.refused = err.Error()
		return o
	}
	w, err := workload.Parse(p.Workload)
	if err != nil {
		return refuse(err)
	}
	process, err := predict.Run(w, h200, predict.Options{Steps: len(p.Steps)})
	if err != nil {
		return refuse(err)
	}
	prediction, err := process.Prediction()
	if err != nil {
		return refuse(err)
	}
	o.peaks = prediction.Parameters == p.Parameters
	for i, s := range p.Steps {
		got := prediction.Steps[i]
		for _, pair := range [][2]int64{{int64(got.PeakAllocated), s.Allocated}, {int64(got.PeakReserved), s.Reserved}} {
			o.peaks = o.peaks && pair[0] == pair[1]
			if off := float64(pair[0])/float64(pair[1]) - 1; max(off, -off) > max(o.off, -o.off) {
				o.off = off
			}
		}
	}
	o.steps = fmt.Sprint(prediction.Parameters-p.Parameters, " more parameters; ")
	for i, s := range p.Steps {
		o.steps += fmt.Sprintf("%d, %d of %d; ", prediction.Steps[i].PeakAllocated, prediction.Steps[i].PeakReserved, s)
	}
	o.different = difference(process.Requests(), p.Requests)
	o.events = o.peaks && o.different == ""
	return o
}

// difference says where requests differ first, "" if nowhere. What a process frees when it
// ends is not compared.
func difference(got *trace.Trace, requests []int64) string {
	for len(requests) > 0 && requests[len(requests)-1] < 0 {
		requests = requests[:len(requests)-1]
	}
	c := trace.Compare(got, tracetest.Requests(requests))
	for c.Beyond[0] > 0 && c.Requests[0][len(c.Requests[0])-c.Beyond[0]].Free {
		c.Beyond[0]--
	}
	at := [2]int{c.Before, c.Before}
	switch {
	case c.Differ():
		at = c.Stretches[0].From
	case len(c.Reordered) > 0:
		at = [2]int{c.Reordered[0], c.Reordered[0]}
	case c.Beyond == [2]int{}:
		return ""
	}
	var around strings.Builder
	for i := -min(6, at[0], at[1]); i < 8; i++ {
		fmt.Fprintf(&around, "%5d  predicted %-20s emulated %s\n", at[1]+i, request(c.Requests[0], at[0]+i), request(c.Requests[1], at[1]+i))
	}
	return around.String()
}

// pageOf is docs/families.md.
func pageOf(outcomes []*outcome) []byte {
	var b bytes.Buffer
	versions := outcomes[slices.IndexFunc(outcomes, func(o *outcome) bool { return o.pair.Error == "" })].pair.Versions
	fmt.Fprintf(&b, `# Families and heads

What MemoryMark predicts of a small model of every pair of family and head that transformers %s has, next to a process of the same
on an emulated H200 (PyTorch %s): three steps of a batch of two in float32 with AdamW. *Events* are equal if every allocation and every
free is, in order; *peaks* if the allocated and the reserved bytes of each step are, and the number of parameters. %s writes
this page, %s the processes.

| head | pairs | emulated | predicted | peaks equal | events equal | least | most |
|---|---|---|---|---|---|---|---|
`, versions.Transformers, versions.Torch, "`go test ./internal/pymodule -run TestPairs -update`", "`make families`")
	heads := make(map[string][]*outcome)
	for _, o := range outcomes {
		heads[o.head()] = append(heads[o.head()], o)
	}
	for _, head := range slices.Sorted(maps.Keys(heads)) {
		row(&b, head, heads[head])
	}
	row(&b, "**all**", outcomes)
	writeList(&b, "Not exact", "Predicted, but not what was emulated: by how much the peak that is furthest off is off. No figure: only the order of requests differs.",
		outcomes, func(o *outcome) (string, bool) {
			switch {
			case o.pair.Error != "" || o.refused != "" || o.events:
				return "", false
			case o.peaks:
				return "", true
			}
			return fmt.Sprintf("%+.2f %%", o.off*100), true
		})
	writeList(&b, "Refused", "Not predicted: emulate these.", outcomes, func(o *outcome) (string, bool) { return construct(o.refused), o.refused != "" })
	writeList(&b, "Not compared", "No small configuration of these ran: some need packages, some a batch of another kind.", outcomes,
		func(o *outcome) (string, bool) { return o.pair.Error, o.pair.Error != "" })
	return b.Bytes()
}

func (o *outcome) head() string { return strings.SplitN(o.pair.ID, "/", 2)[0] }

func row(b *bytes.Buffer, head string, outcomes []*outcome) {
	var emulated, predicted, peaks, events int
	var low, high float64
	for _, o := range outcomes {
		if o.pair.Error != "" {
			continue
		}
		emulated++
		if o.refused != "" {
			continue
		}
		predicted++
		low, high = min(low, o.off), max(high, o.off)
		if o.peaks {
			peaks++
		}
		if o.events {
			events++
		}
	}
	fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d | %.2f %% | +%.2f %% |\n", head, len(outcomes), emulated, predicted, peaks, events, low*100, high*100)
}

func writeList(b *bytes.Buffer, title, text string, outcomes []*outcome, of func(o *outcome) (string, bool)) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| head | family | class | |\n|---|---|---|---|\n", title, text)
	for _, o := range outcomes {
		if why, ok := of(o); ok {
			why = strings.ReplaceAll(strings.Join(strings.Fields(why), " "), "|", "\\|")
			fmt.Fprintf(b, "| %s | %s |\n", strings.ReplaceAll(o.pair.ID, "/", " | "), why)
		}
	}
}

// construct is what an error names, and where that is.
func construct(err string) string {
	err, _, _ = strings.Cut(err, "; ")
	_, what, ok := strings.Cut(err, "is not modelled: ")
	if !ok {
		return err
	}
	return what
}
