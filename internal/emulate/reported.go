package emulate

import (
	"errors"
	"fmt"

	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
)

// Rows says how far off the peaks of an emulated program are from those of its recording on a real
// card, in rows that tell nothing of the program but the name given here.
func (s *Summary) Rows(source, name string, allocated, reserved int64) ([]evidence.Row, error) {
	if s.Engine != evidence.Emulated || len(s.Processes) == 0 || len(s.Processes[0].Devices) == 0 {
		return nil, errors.New("this is no report of a program that used an emulated GPU")
	}
	p := &s.Processes[0]
	if s.Failure != nil || p.Failure != nil || p.Sampled {
		return nil, errors.New("the program did not end well, so its peaks are not those of the whole run")
	}
	card, err := gpu.Find(s.GPU)
	if err != nil {
		return nil, fmt.Errorf("%w; only cards of the catalog can be compared", err)
	}
	row := func(what string, have, want int64) evidence.Row {
		return evidence.Row{
			Comparison: "peak " + what + ", programs, emulated, reported", Recording: name, Source: source,
			Card: card.ID, PyTorch: evidence.Release(p.Torch), SignedError: float64(have)/float64(want) - 1,
		}
	}
	d := p.Devices[0]
	return []evidence.Row{row("allocated", int64(d.Allocated), allocated), row("reserved", int64(d.Reserved), reserved)}, nil
}
