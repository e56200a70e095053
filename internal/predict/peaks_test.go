package predict

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
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

var update = flag.Bool("update", false, "rewrite accuracy.json")

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

// TestPeaks predicts every measured workload, prints how far off each family
// is, and fails where one is worse than accuracy.json says. What is not
// modelled counts as off.
func TestPeaks(t *testing.T) {
	families := predictFamilies(t)
	t.Logf("%-36s %5s %10s | %s | %s", "architecture", "lines", "unmodelled", header("allocated"), header("reserved"))
	now := make(map[string]Accuracy)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		t.Logf("%-36s %5d %10d | %v | %v", name, f.lines, f.unmodelled, &f.allocated, &f.reserved)
		now[name] = Accuracy{Workloads: f.lines, Allocated: f.allocated.sum(), Reserved: f.reserved.sum()}
		stated, _ := StatedAccuracy(name)
		if isWorse(now[name].Allocated, stated.Allocated) {
			t.Errorf("%s: allocated is %+v, stated was %+v: %s", name, now[name].Allocated, stated.Allocated, f.allocated.farthest())
		}
		if isWorse(now[name].Reserved, stated.Reserved) {
			t.Errorf("%s: reserved is %+v, stated was %+v: %s", name, now[name].Reserved, stated.Reserved, f.reserved.farthest())
		}
	}
	if *update {
		data, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("accuracy.json", append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func isWorse(now, stated Errors) bool {
	return now.Exact < stated.Exact || now.Worst > stated.Worst
}

func predictFamilies(t *testing.T) map[string]*family {
	t.Helper()
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
	return families
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
	allocated, reserved lineErrors
}

func (f *family) add(t *testing.T, line measuredPeaks, card *gpu.Card) {
	t.Helper()
	f.lines++
	p, err := predictLine(line.Workload, card)
	if err != nil {
		f.unmodelled++
		f.allocated = append(f.allocated, lineError{line.ID, 1})
		f.reserved = append(f.reserved, lineError{line.ID, 1})
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

type lineErrors []lineError

func (e lineErrors) sorted() lineErrors {
	return slices.SortedFunc(slices.Values(e), func(a, b lineError) int {
		return cmp.Compare(math.Abs(b.share), math.Abs(a.share))
	})
}

// sum adds the errors up, rounded up to a millionth.
func (e lineErrors) sum() Errors {
	var out Errors
	for _, x := range e {
		if x.share == 0 {
			out.Exact++
		}
		if math.Abs(x.share) <= 0.01 {
			out.Within++
		}
	}
	if s := e.sorted(); len(s) > 0 {
		up := func(share float64) float64 { return math.Ceil(math.Abs(share)*1e6) / 1e6 }
		out.Median, out.Worst = up(s[len(s)/2].share), up(s[0].share)
	}
	return out
}

// farthest names the lines that are farthest off.
func (e lineErrors) farthest() string {
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
func (e *lineErrors) String() string {
	if len(*e) == 0 {
		return fmt.Sprintf("%42s", "")
	}
	s := e.sum()
	return fmt.Sprintf("%15d %7d %7.3f%% %8.3f%%", s.Exact, s.Within, 100*s.Median, 100*s.Worst)
}
