package check

import (
	"cmp"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/recording"
	"memorymark/internal/trace"
)

// Taken is what a workload takes. One that does not fit has no peak.
type Taken struct {
	Engine    evidence.Engine `json:"engine"`
	Allocated bytesize.Bytes  `json:"peak_allocated,omitempty"`
	Reserved  bytesize.Bytes  `json:"peak_reserved,omitempty"`
	Places    []Place         `json:"places,omitempty"` // what is live at the peak, largest first
	// Limit is the most that PyTorch may reserve on the card.
	Limit bytesize.Bytes `json:"-"`
	// TooLarge says why it does not fit on the card, empty if it does.
	TooLarge string `json:"-"`
}

// Place is where memory comes from: a module of a predicted model, a line of an
// emulated one.
type Place struct {
	For   string         `json:"for,omitempty"`
	Where string         `json:"where"`
	Bytes bytesize.Bytes `json:"bytes"`
}

// PlacesOf groups what is live at the peak of a recording, whatever the layer.
// Files are named from a folder, where they are in it, and from where packages
// are installed: a baseline is compared on other machines.
func PlacesOf(r *recording.Recording, folder string) ([]Place, error) {
	top, err := r.Top("peak", recording.ByLine, 0)
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
			where = strings.TrimPrefix(g.UserFrame.Short().String(), folder+"/")
		case g.ModelFrame != nil:
			where = g.ModelFrame.Short().String()
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

// For is what a baseline has of the workloads of a file.
func (b *Baseline) For(f *File) *Baseline {
	out := &Baseline{Workloads: make(map[string]Taken)}
	for _, item := range f.Items {
		if before, ok := b.Workloads[item.Name]; ok {
			out.Workloads[item.Name] = before
		}
	}
	return out
}

// Set writes what a workload takes now. What does not fit takes nothing that
// could be compared: the baseline keeps what it had.
func (b *Baseline) Set(item Item, taken *Taken) {
	if taken.TooLarge == "" {
		b.Workloads[item.Name] = *taken
	}
}

// BudgetVerdict is whether a workload keeps to its budget.
type BudgetVerdict struct {
	Name string `json:"name"`
	Line int    `json:"-"` // of the file of budgets
	Taken
	Fits   bool            `json:"fits"`
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

// Judge compares what a workload takes with its budget and its baseline. There
// is nothing to compare of one that does not fit.
func Judge(item Item, taken Taken, base *Baseline, allow float64) BudgetVerdict {
	v := BudgetVerdict{Name: item.Name, Line: item.Line, Taken: taken, Fits: taken.TooLarge == "", Max: item.Max}
	if !v.Fits {
		v.Reason = "it does not fit on the card: " + taken.TooLarge
		return v
	}
	if before, ok := base.Workloads[item.Name]; ok {
		v.Before = &before.Allocated
		v.Grown = grown(before.Places, taken.Places)
		if float64(taken.Allocated) > float64(before.Allocated)*(1+allow) {
			v.Reason = "it grew by " + (taken.Allocated - before.Allocated).String()
		}
	}
	if item.Max > 0 && taken.Reserved > item.Max {
		v.Reason = "it takes " + taken.Reserved.String() + " of " + item.Max.String()
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
