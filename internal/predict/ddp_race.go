package predict

import (
	"memorymark/internal/allocator"
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
// and bf16) it was late in 17. So nothing fits that does not fit both ways.
type Late struct {
	Fits  bool              `json:"fits"`
	Steps []allocator.Usage `json:"steps"`
}

// PeakReserved is the peak of reserved memory then.
func (l *Late) PeakReserved() bytesize.Bytes { return PeakOf(l.Steps).PeakReserved }

// latePeaks are what the steps take with the watchdog late; nil where there is no
// race.
func (s *Process) latePeaks() (*Late, error) {
	if !races(s.program.w) {
		return nil, nil //nolint:nilnil // no race, and nothing wrong
	}
	late := s.late
	if late == nil { // it did not fit anyway
		var err error
		if late, err = s.batches.process(variant{s.program.w.Batch, true}); err != nil {
			return nil, err
		}
	}
	return &Late{Fits: late.Fits(), Steps: late.Steps()}, nil
}

// Races are what a largest batch leaves open.
func Races(w *workload.Workload) []string {
	if !races(w) {
		return nil
	}
	return []string{"NCCL may keep DDP's first bucket, as large as all gradients, into the second step: the allocator may then reserve that much more. The largest batch fits then, too"}
}

// races reports whether it is left to chance when NCCL releases DDP's first buckets.
// Where DDP looks for unused parameters, it never rebuilds them.
func races(w *workload.Workload) bool { return hasBuckets(w) && !alwaysLate(w) && !findsUnused(w) }

// alwaysLate reports whether buckets are rebuilt between two passes of the first
// step, as where a loop accumulates gradients and reduces them after every pass.
// Nothing takes time there: the watchdog was late in five of five processes of
// GPT-2 on an H200. Loops of libraries reduce gradients only after the last pass
// (DistributedDataParallel.no_sync).
func alwaysLate(w *workload.Workload) bool {
	return hasBuckets(w) && w.Accumulate > 1 && !w.Loop.IsLibrarys()
}

// hasBuckets reports whether gradients are reduced in DDP's buckets.
func hasBuckets(w *workload.Workload) bool {
	return w.Parallel != nil && (w.Parallel.Kind == workload.DDP || w.Parallel.Kind == workload.ZeRO1)
}
