package budget

import (
	"cmp"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/recording"
	"memorymark/internal/trace"
)

// Taken is what a workload takes.
type Taken struct {
	Engine    evidence.Engine `json:"engine"`
	Allocated bytesize.Bytes  `json:"peak_allocated"`
	Reserved  bytesize.Bytes  `json:"peak_reserved"`
	Places    []Place         `json:"places"` // what is live at the peak, largest first
	// Limit is the most that PyTorch may reserve on the card.
	Limit bytesize.Bytes `json:"-"`
	Fits  bool           `json:"-"`
}

// Place is where memory comes from: a module of a predicted model, a line of an
// emulated one.
type Place struct {
	For   string         `json:"for,omitempty"`
	Where string         `json:"where"`
	Bytes bytesize.Bytes `json:"bytes"`
}

// PlacesOf groups what is live at the peak of a recording, whatever the layer.
func PlacesOf(r *recording.Recording) ([]Place, error) {
	top, err := r.Top("peak", recording.ByStack, 0)
	if err != nil {
		return nil, err
	}
	type key struct{ use, where string }
	sums := make(map[key]bytesize.Bytes)
	for i := range top.Groups {
		g := &top.Groups[i]
		where := "backward"
		switch {
		case g.UserFrame != nil:
			where = g.UserFrame.String()
		case g.ModelFrame != nil:
			where = g.ModelFrame.String()
		}
		sums[key{g.Category, trace.AnyLayer(where)}] += bytesize.Bytes(g.Bytes)
	}
	places := make([]Place, 0, len(sums))
	for k, bytes := range sums {
		places = append(places, Place{k.use, k.where, bytes})
	}
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Where, b.Where), cmp.Compare(a.For, b.For))
	})
	return places, nil
}

// Baseline is what workloads took before, by name.
type Baseline struct {
	Workloads map[string]Taken `json:"workloads"`
}

// Verdict is whether a workload keeps to its budget.
type Verdict struct {
	Name string `json:"name"`
	Taken
	Max    bytesize.Bytes  `json:"max,omitempty"`
	Before *bytesize.Bytes `json:"before,omitempty"` // peak_allocated of the baseline
	Reason string          `json:"reason,omitempty"` // why it fails; empty if it does not
	Grown  []Growth        `json:"grown,omitempty"`
}

// Growth is how much more a place takes; less if it is negative.
type Growth struct {
	Place
	By bytesize.Bytes `json:"by"`
}

// Judge compares what a workload takes with its budget and its baseline.
func Judge(item Item, taken Taken, base *Baseline, allow float64) Verdict {
	v := Verdict{Name: item.Name, Taken: taken, Max: item.Max}
	if before, ok := base.Workloads[item.Name]; ok {
		v.Before = &before.Allocated
		v.Grown = grown(before.Places, taken.Places)
		if float64(taken.Allocated) > float64(before.Allocated)*(1+allow) {
			v.Reason = "it grew by " + (taken.Allocated - before.Allocated).String()
		}
	}
	switch {
	case item.Max > 0 && taken.Reserved > item.Max:
		v.Reason = "it takes " + taken.Reserved.String() + " of " + item.Max.String()
	case item.Fit && !taken.Fits:
		v.Reason = "it does not fit on the card; PyTorch may use " + taken.Limit.String()
	}
	return v
}

// grown are the places whose sums changed, those that grew most first.
func grown(before, after []Place) []Growth {
	type key struct{ use, where string }
	was := make(map[key]bytesize.Bytes)
	for _, p := range before {
		was[key{p.For, p.Where}] += p.Bytes
	}
	var out []Growth
	for _, p := range after {
		k := key{p.For, p.Where}
		if p.Bytes != was[k] {
			out = append(out, Growth{p, p.Bytes - was[k]})
		}
		delete(was, k)
	}
	for k, bytes := range was {
		out = append(out, Growth{Place{For: k.use, Where: k.where}, -bytes})
	}
	slices.SortFunc(out, func(a, b Growth) int { return cmp.Or(cmp.Compare(b.By, a.By), cmp.Compare(a.Where, b.Where)) })
	return out
}
