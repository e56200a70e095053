package predict

import (
	"memorymark/internal/bytesize"
	"memorymark/internal/workload"
)

// LoopPeak is what the same steps take in another training loop.
type LoopPeak struct {
	Loop         workload.LoopName
	PeakReserved bytesize.Bytes
	Fits         bool
}

// OtherLoops runs a batch in the loops that the workload is not for, none
// where loops do not matter or are not known.
func (r *Runner) OtherLoops(batch int64) ([]LoopPeak, error) {
	var out []LoopPeak
	for _, w := range r.w.OtherLoops() {
		s, err := NewRunner(w, r.card).Within(r.effort).Simulate(batch)
		if err != nil {
			return nil, err
		}
		out = append(out, LoopPeak{w.Loop.Name, s.Peak().PeakReserved, s.Fits()})
	}
	return out, nil
}

// OtherLoops is what the simulated steps take in other loops.
func (s *Simulation) OtherLoops() ([]LoopPeak, error) { return s.runner.OtherLoops(s.Process.w.Batch) }
