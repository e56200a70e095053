package predict

import (
	"memorymark/internal/effort"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

func isPipeline(w *workload.Workload) bool {
	return w.Parallel != nil && w.Parallel.Kind == workload.Pipeline
}

// heaviestStage runs every stage of a pipeline and returns the one that reserves the
// most.
func heaviestStage(w *workload.Workload, d torch.Device, steps int, e *effort.Effort) (*Process, error) {
	var heaviest *Process
	var most int64
	for rank := range w.Parallel.GPUs {
		p, err := (&Process{w: w, rank: rank}).run(d, steps, e)
		if err != nil {
			return nil, err
		}
		s := Simulation{Process: p, runner: &Runner{effort: e}}
		course, err := s.play(noLimit)
		if err != nil {
			return nil, err
		}
		var reserved int64
		for _, stage := range course.Stages {
			reserved = max(reserved, stage.PeakReserved)
		}
		if heaviest != nil && reserved <= most {
			p.t.Forget()
			continue
		}
		if heaviest != nil {
			heaviest.t.Forget()
		}
		heaviest, most = p, reserved
	}
	return heaviest, nil
}

// stageKinds are the ranks of a pipeline, each of which is of a kind of its own.
func stageKinds(p *workload.Parallel) []torch.RankKind {
	kinds := make([]torch.RankKind, p.GPUs)
	for rank := range kinds {
		kinds[rank].Ranks = []int64{int64(rank)}
	}
	return kinds
}

// bubble is how long a stage waits while a pipeline fills and drains, as if all stages
// took as long as this one.
func bubble(p *workload.Parallel, computing float64) float64 {
	return computing * float64(p.GPUs-1) / float64(p.Microbatches)
}
