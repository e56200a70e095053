package predict

import (
	"fmt"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// Rank is what ranks take whose parts of the model have the same sizes.
type Rank struct {
	Ranks         string         `json:"ranks" doc:"such as 0-5, 7"`
	PeakAllocated bytesize.Bytes `json:"peak_allocated"`
	PeakReserved  bytesize.Bytes `json:"peak_reserved"`
	Decides       bool           `json:"decides" doc:"no other ranks reserve more"`
}

// Ranks of more sizes than these are not all simulated: those that update the
// most parameters are, and the others take less.
const maxRankKinds = 6

// ranks are what kinds of ranks take, the one that decides first; nil where all
// are alike. If it is another than the rank that was run and does not fit, its failure is
// the prediction's.
func (s *Process) ranks() (out []Rank, failed *OutOfMemory, err error) {
	kinds := s.program.rankKinds
	if len(kinds) < 2 {
		return nil, nil, nil
	}
	decides, most := 0, maxRankKinds
	if isPipeline(s.program.w) {
		most = len(kinds)
	}
	for i, kind := range kinds[:min(most, len(kinds))] {
		sim := s
		if kind.Ranks[0] != s.program.rank {
			if sim, err = s.asRank(kind.Ranks[0]); err != nil {
				return nil, nil, err
			}
			if failed == nil {
				failed = sim.OutOfMemory()
			}
		}
		peak := sim.Peak()
		out = append(out, Rank{Ranks: rankText(kind.Ranks), PeakAllocated: peak.PeakAllocated, PeakReserved: peak.PeakReserved})
		if out[i].PeakReserved > out[decides].PeakReserved {
			decides = i
		}
	}
	out[decides].Decides = true
	return out, failed, nil
}

// asRank runs the same steps as another rank does.
func (s *Process) asRank(rank int64) (out *Process, err error) {
	w := s.program.w
	defer recoverError(w, &err)
	p, err := (&program{w: w, rank: rank}).run(deviceOf(s.card), stepsFor(w), s.batches.options.Budget)
	if err != nil {
		return nil, err
	}
	return s.batches.newProcess(p, s.Limit)
}

// rankText writes ranks as people do: 0-5, 7.
func rankText(ranks []int64) string {
	var parts []string
	for i := 0; i < len(ranks); {
		last := i
		for last+1 < len(ranks) && ranks[last+1] == ranks[last]+1 {
			last++
		}
		text := fmt.Sprint(ranks[i])
		if last > i {
			text += fmt.Sprintf("-%d", ranks[last])
		}
		parts = append(parts, text)
		i = last + 1
	}
	return strings.Join(parts, ", ")
}

func isPipeline(w *workload.Workload) bool {
	return w.Parallel != nil && w.Parallel.Kind == workload.Pipeline
}

// heaviestStage runs a program in every stage of a pipeline and returns that of the
// one that reserves the most.
func (b *Batches) heaviestStage(stage program, steps int) (*program, error) {
	var heaviest *program
	var reserved bytesize.Bytes
	for rank := range stage.w.Parallel.GPUs {
		one := stage
		one.rank = rank
		p, err := one.run(deviceOf(b.card), steps, b.options.Budget)
		if err != nil {
			return nil, err
		}
		out, err := (&Process{program: p, batches: b}).play(noLimit)
		if err != nil {
			return nil, err
		}
		if heaviest != nil && out.PeakReserved() <= reserved {
			p.t.Forget()
			continue
		}
		if heaviest != nil {
			heaviest.t.Forget()
		}
		heaviest, reserved = p, out.PeakReserved()
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
