package predict

import (
	"memorymark/internal/bytesize"
	"memorymark/internal/workload"
)

// Late is what the steps take if a race ends the other way. DDP rebuilds its
// buckets when the second step begins. The first ones, as large as all
// gradients, are held until NCCL's watchdog has seen that they are reduced, and
// it looks every 100 ms (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
// kWatchdogThreadSleepMillis). In between are the optimizer's first step, whose
// kernels are loaded then, and whatever else the program does: 51 to 119 ms on
// an H200, 74 in the mean. So the watchdog is in time more often than not, which
// is what is predicted; of 77 processes (BERT, GPT-2 and Llama; fp32, autocast
// and bf16) it was late in 17.
type Late struct {
	Fits  bool   `json:"fits"`
	Steps []Step `json:"steps"`
}

// PeakReserved is the most that the allocator reserves then.
func (l *Late) PeakReserved() bytesize.Bytes { return peakReserved(l.Steps) }

// late runs the same steps with the watchdog late; nil where nothing waits for it.
func (s *Simulation) late() (out *Late, err error) {
	if w := s.Process.w; w.Parallel == nil || !hasBuckets(w.Parallel) {
		return nil, nil //nolint:nilnil // no race, and nothing wrong
	}
	defer recovered(s.Process.w, &err)
	p, err := (&Process{w: s.Process.w, late: true}).run(deviceOf(s.Card), stepsFor(s.Process.w), s.runner.effort)
	if err != nil {
		return nil, err
	}
	o, err := s.runner.simulate(p)
	if err != nil {
		return nil, err
	}
	return &Late{Fits: o.Fits(), Steps: o.Steps()}, nil
}

// Races are what a largest batch leaves open.
func Races(w *workload.Workload) []string {
	if w.Parallel == nil || !hasBuckets(w.Parallel) {
		return nil
	}
	return []string{"NCCL may keep DDP's first bucket, as large as all gradients, into the second step: the allocator may then reserve that much more"}
}

// hasBuckets reports whether gradients are reduced in DDP's buckets.
func hasBuckets(p *workload.Parallel) bool {
	return p.Kind == workload.DDP || p.Kind == workload.ZeRO1
}
