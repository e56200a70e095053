package predict

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// notYetPeaks says, by architecture, how many measured workloads are known not
// to be predicted to the byte: their allocated peaks and ends, and their
// reserved peaks. More than that fails; what is not modelled is all of it.
var notYetPeaks = map[string]struct{ allocated, reserved int }{
	"BertForMaskedLM":              {1, 0},
	"GPT2LMHeadModel":              {1, 0},
	"LlamaForCausalLM":             {3, 1},
	"MistralForCausalLM":           {1, 0},
	"ResNetForImageClassification": {4, 6},
	"T5ForConditionalGeneration":   {1, 0},
	"ViTForImageClassification":    {3, 2},
}

// measuredPeaks is a line of peaks.jsonl and peaks-random.jsonl.
type measuredPeaks struct {
	ID       string          `json:"id"`
	Workload json.RawMessage `json:"workload"`
	Measured struct {
		Parameters     int64   `json:"parameters"`
		ModelAllocated int64   `json:"model_allocated"`
		PeakAllocated  []int64 `json:"peak_allocated"`
		EndAllocated   []int64 `json:"end_allocated"`
		PeakReserved   []int64 `json:"peak_reserved"`
	} `json:"measured"`
}

// TestPeaks predicts every measured workload and prints how far off each
// family is.
func TestPeaks(t *testing.T) {
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	families := make(map[string]*family)
	for _, file := range []string{"peaks.jsonl", "peaks-random.jsonl"} {
		for _, line := range readPeaks(t, file) {
			architecture := architectureOf(t, line.Workload)
			f := families[architecture]
			if f == nil {
				f = &family{}
				families[architecture] = f
			}
			f.add(t, line, card)
		}
	}
	t.Logf("%-40s %5s %9s | %s | %s", "architecture", "lines", "unmodelled", header("allocated"), header("reserved"))
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		t.Logf("%-40s %5d %9d | %v | %v", name, f.lines, f.unmodelled, &f.allocated, &f.reserved)
		allowed := notYetPeaks[name]
		if n := f.unmodelled + f.allocated.inexact(); n > allowed.allocated {
			t.Errorf("%s: allocated is not exact for %d lines, allowed are %d: %s", name, n, allowed.allocated, f.allocated.worst())
		}
		if n := f.unmodelled + f.reserved.inexact(); n > allowed.reserved {
			t.Errorf("%s: reserved is not exact for %d lines, allowed are %d: %s", name, n, allowed.reserved, f.reserved.worst())
		}
	}
}

func readPeaks(t *testing.T, file string) []measuredPeaks {
	t.Helper()
	f, err := os.Open(truthDir + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []measuredPeaks
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line measuredPeaks
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, line)
	}
	return out
}

func architectureOf(t *testing.T, data []byte) string {
	t.Helper()
	var w struct {
		Config struct {
			Architectures []string `json:"architectures"`
		} `json:"config"`
	}
	if err := json.Unmarshal(data, &w); err != nil || len(w.Config.Architectures) == 0 {
		t.Fatal("no architecture", err)
	}
	return w.Config.Architectures[0]
}

// family is how predictions of one architecture do.
type family struct {
	lines, unmodelled   int
	allocated, reserved errors
}

func (f *family) add(t *testing.T, line measuredPeaks, card *gpu.Card) {
	t.Helper()
	f.lines++
	p, err := predictLine(line.Workload, card)
	if err != nil {
		f.unmodelled++
		t.Logf("%s: %v", line.ID, err)
		return
	}
	m := &line.Measured
	if p.Parameters != m.Parameters {
		t.Errorf("%s: %d parameters, measured %d", line.ID, p.Parameters, m.Parameters)
	}
	var allocated, reserved, end float64
	for i, s := range p.Steps[:len(m.PeakAllocated)] { // some ran two steps
		allocated = worse(allocated, int64(s.PeakAllocated), m.PeakAllocated[i])
		end = worse(end, int64(s.EndAllocated), m.EndAllocated[i])
		reserved = worse(reserved, int64(s.PeakReserved), m.PeakReserved[i])
	}
	allocated = worse(allocated, int64(p.ModelAllocated), m.ModelAllocated)
	if allocated == 0 {
		allocated = end
	}
	f.allocated = append(f.allocated, lineError{line.ID, allocated})
	f.reserved = append(f.reserved, lineError{line.ID, reserved})
}

// predictLine turns a panic into an error: a family that is being written must
// not hide how the others do.
func predictLine(data []byte, card *gpu.Card) (p *Prediction, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	w, err := workload.Parse(data)
	if err != nil {
		return nil, err
	}
	return Predict(w, card)
}

// worse returns the larger error, as a share of what was measured.
func worse(before float64, got, want int64) float64 {
	e := float64(got-want) / float64(want)
	if math.Abs(e) > math.Abs(before) {
		return e
	}
	return before
}

type lineError struct {
	id    string
	share float64 // signed; 0 is exact
}

type errors []lineError

func (e errors) inexact() int {
	n := 0
	for _, x := range e {
		if x.share != 0 {
			n++
		}
	}
	return n
}

func (e errors) sorted() errors {
	return slices.SortedFunc(slices.Values(e), func(a, b lineError) int {
		return cmp.Compare(math.Abs(b.share), math.Abs(a.share))
	})
}

// worst names the lines that are farthest off.
func (e errors) worst() string {
	var out []string
	for _, x := range e.sorted()[:min(len(e), 5)] {
		out = append(out, fmt.Sprintf("%s %+.4f %%", x.id, 100*x.share))
	}
	return strings.Join(out, ", ")
}

func header(what string) string {
	return fmt.Sprintf("%-9s exact  in 1 %%   median     worst", what)
}

// String is a line below header.
func (e *errors) String() string {
	if len(*e) == 0 {
		return fmt.Sprintf("%42s", "")
	}
	near := 0
	for _, x := range *e {
		if math.Abs(x.share) <= 0.01 {
			near++
		}
	}
	s := e.sorted()
	return fmt.Sprintf("%15d %7d %7.3f%% %+8.3f%%", len(*e)-e.inexact(), near, 100*math.Abs(s[len(s)/2].share), 100*s[0].share)
}
