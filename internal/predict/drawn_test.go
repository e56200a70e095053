package predict

import (
	"math"
	"testing"
)

// drawnAllocated and drawnReserved cache what drawn finds, which takes seconds.
var drawnAllocated, drawnReserved lineErrors

// drawn predicts workloads as people ask for them, drawn at random from every key:
// all models of the catalog with their heads, loops, precisions, optimizers,
// adapters, quantized weights and kinds of parallelism, in odd sizes.
func drawn(t *testing.T) (allocated, reserved lineErrors) {
	t.Helper()
	if drawnAllocated != nil {
		return drawnAllocated, drawnReserved
	}
	for _, line := range readLines[measuredPeaks](t, "peaks-drawn.jsonl") {
		p, err := predictLine(line.Workload, h200Card(t))
		if err != nil {
			t.Errorf("%s: %v", line.ID, err)
			continue
		}
		a, r := line.errors(p)
		allocated = append(allocated, lineError{line.ID, a, line.Measured.Parameters})
		reserved = append(reserved, lineError{line.ID, r, line.Measured.Parameters})
	}
	drawnAllocated, drawnReserved = allocated, reserved
	return allocated, reserved
}

// errors are those of the worst step. Of a race, the end that came is compared.
func (m *measuredPeaks) errors(p *Prediction) (allocated, reserved float64) {
	allocated, reserved = m.stepErrors(p.Steps)
	if p.Late == nil {
		return allocated, reserved
	}
	if a, r := m.stepErrors(p.Late.Steps); math.Abs(a) < math.Abs(allocated) {
		return a, r
	}
	return allocated, reserved
}

func (m *measuredPeaks) stepErrors(steps []Step) (allocated, reserved float64) {
	for i, s := range steps {
		allocated = worse(allocated, int64(s.PeakAllocated), m.Measured.PeakAllocated[i])
		reserved = worse(reserved, int64(s.PeakReserved), m.Measured.PeakReserved[i])
	}
	return allocated, reserved
}

func TestDrawn(t *testing.T) {
	allocated, reserved := drawn(t)
	t.Logf("%s | %s", header("allocated"), header("reserved"))
	t.Logf("%v | %v", &allocated, &reserved)
	if e := allocated.sum(); e.Cases != 957 || e.Exact < 876 || e.Percentile95 > 0.00063 {
		t.Errorf("allocated is %+v, it was better; farthest are %s", e, allocated.farthest())
	}
	if e := reserved.sum(); e.Exact < 886 || e.Percentile95 > 0.0041 {
		t.Errorf("reserved is %+v, it was better; farthest are %s", e, reserved.farthest())
	}
}
