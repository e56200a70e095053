package study

import (
	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// PrecisionComparison is what mixed precision does to the memory of a step: part by
// part, what shrinks apart from what does not.
type PrecisionComparison struct {
	Full, Mixed *Result
	Phases      []PhaseComparison
}

// PhaseComparison is a part of the step in both precisions, at its peak.
type PhaseComparison struct {
	Name        string
	Full, Mixed *PhaseUsage
	Rows        []PurposeChange
}

// PurposeChange is what memory for one purpose becomes in mixed precision.
type PurposeChange struct {
	What        string
	Full, Mixed bytesize.Bytes
}

// The effects that mixed precision has on memory.
const (
	Stays   = "stays"
	Shrinks = "shrinks"
	Grows   = "is added"
)

// Effect is what mixed precision does to it.
func (c PurposeChange) Effect() string {
	switch {
	case c.Mixed > c.Full:
		return Grows
	case c.Mixed < c.Full:
		return Shrinks
	default:
		return Stays
	}
}

// By returns the rows of an effect and their sum.
func (p *PhaseComparison) By(effect string) (rows []PurposeChange, sum PurposeChange) {
	sum.What = effect
	for _, r := range p.Rows {
		if r.Effect() == effect && (r.Full > 0 || r.Mixed > 0) {
			rows = append(rows, r)
			sum.Full += r.Full
			sum.Mixed += r.Mixed
		}
	}
	return rows, sum
}

// Compare sets two results side by side. Both must fit.
func Compare(full, mixed *Result) *PrecisionComparison {
	c := &PrecisionComparison{Full: full, Mixed: mixed}
	for i := range full.Phases {
		f := &full.Phases[i]
		if m := mixed.Phase(f.Name); m != nil {
			c.Phases = append(c.Phases, PhaseComparison{f.Name, f, m, compareParts(f, m)})
		}
	}
	return c
}

// The rows of a comparison whose names texts refer to.
const (
	ActivationRow   = "activations"
	WeightCopiesRow = "weights that autocast has cast"
)

// compareParts lists the purposes; copies of the weights, which only autocast
// makes, are taken out of the activations.
func compareParts(full, mixed *PhaseUsage) []PurposeChange {
	sum := func(p *PhaseUsage, categories ...trace.Category) bytesize.Bytes {
		var out bytesize.Bytes
		for _, c := range categories {
			out += p.Of(c)
		}
		return out
	}
	rows := []PurposeChange{}
	add := func(what string, categories ...trace.Category) {
		rows = append(rows, PurposeChange{what, sum(full, categories...), sum(mixed, categories...)})
	}
	add("parameters", trace.Parameter)
	add("optimizer state", trace.OptimizerState)
	add("gradients", trace.Gradient)
	add(ActivationRow, trace.Activation)
	rows[len(rows)-1].Full -= full.WeightCopies
	rows[len(rows)-1].Mixed -= mixed.WeightCopies
	rows = append(rows, PurposeChange{WeightCopiesRow, full.WeightCopies, mixed.WeightCopies})
	add("temporaries", trace.Temporary)
	add("batch and workspaces", trace.Input, trace.Workspace, trace.Unknown)
	return rows
}

// Row returns the row of a purpose.
func (p *PhaseComparison) Row(what string) PurposeChange {
	for _, r := range p.Rows {
		if r.What == what {
			return r
		}
	}
	return PurposeChange{What: what}
}

// Fixed is what does not depend on the precision, in fp32: parameters,
// gradients and optimizer state.
func (p *PhaseComparison) Fixed() bytesize.Bytes {
	return p.Full.Of(trace.Parameter) + p.Full.Of(trace.Gradient) + p.Full.Of(trace.OptimizerState)
}

// Phase returns a part of the step, nil if it did not run.
func (c *PrecisionComparison) Phase(name string) *PhaseComparison {
	for i := range c.Phases {
		if c.Phases[i].Name == name {
			return &c.Phases[i]
		}
	}
	return nil
}
