package predict

import (
	"fmt"
	"strings"

	"memorymark/internal/bytesize"
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
const mostRankKinds = 6

// ranks are what kinds of ranks take, the one that decides first; nil where all
// are alike. If it is another than the rank that was run and does not fit, its failure is
// the prediction's.
func (s *Simulation) ranks() (out []Rank, failed *OutOfMemory, err error) {
	kinds := s.Process.rankKinds
	if len(kinds) < 2 {
		return nil, nil, nil
	}
	decides, most := 0, mostRankKinds
	if isPipeline(s.Process.w) {
		most = len(kinds)
	}
	for i, kind := range kinds[:min(most, len(kinds))] {
		sim := s
		if kind.Ranks[0] != s.Process.rank {
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
func (s *Simulation) asRank(rank int64) (out *Simulation, err error) {
	w := s.Process.w
	defer recovered(w, &err)
	p, err := (&Process{w: w, rank: rank}).run(deviceOf(s.Card), stepsFor(w), s.runner.effort)
	if err != nil {
		return nil, err
	}
	return s.runner.simulate(p)
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
