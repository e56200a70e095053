package study

import "memorymark/internal/workload"

// Finding is a cell of a plan and what it came to.
type Finding struct {
	Cell
	*Result
	Fit *Fit // what would fit, if the cell does not
}

// Findings puts the results of a plan's cells together with what would fit
// where they do not.
func Findings(cells []Cell, results []*Result) ([]Finding, error) {
	out := make([]Finding, len(cells))
	for i, c := range cells {
		out[i] = Finding{Cell: c, Result: results[i]}
		if results[i].OutOfMemory == nil {
			continue
		}
		var err error
		if out[i].Fit, err = WhatFits(c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Activations derives the activations of each model at the longest context.
func (p *Plan) Activations() ([]*Activation, error) {
	var out []*Activation
	for _, model := range p.Models {
		d := workload.Draft{}
		d.Set("model", model)
		w, err := d.Workload()
		if err != nil {
			return nil, err
		}
		w.Batch, w.Sequence = p.Batch, p.Longest()
		a, err := NewActivation(w, p.Card, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}
