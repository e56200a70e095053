// Package change knows what can be changed about training so that it takes less
// memory: one table of changes, and one search for the smallest sets of them with
// which a workload fits a card. A change is data: what people call it, and the keys
// of a workload that it sets.
package change

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Change is one thing to change.
type Change struct {
	Label string         `json:"label" doc:"as people say it, such as LoRA of rank 16"`
	Patch workload.Draft `json:"patch" doc:"the keys of the workload that it sets, with their values"`
}

// Labels is a set of changes in a few words.
func Labels(changes []Change) string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.Label
	}
	return strings.Join(out, " + ")
}

// Apply returns a draft with changes.
func Apply(d workload.Draft, changes []Change) workload.Draft {
	out := maps.Clone(d)
	for _, c := range changes {
		maps.Copy(out, c.Patch)
	}
	return out
}

// Split is the change to a smaller batch, of which several are accumulated for an
// update.
func Split(batch, passes int64) Change {
	return Change{
		Label: fmt.Sprintf("batch %d accumulated %d times", batch, passes),
		Patch: workload.Draft{"batch": number(batch), "accumulate": number(passes)},
	}
}

// Splits reports whether a change is a split of the batch.
func (c Change) Splits() bool { _, splits := c.Patch["batch"]; return splits }

func number(n int64) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }

// Batches are the batches that the samples of an update can be made of: powers of two
// that divide it, and all of it.
func Batches(update int64) []int64 {
	var out []int64
	for b := int64(1); update%b == 0 && b < update; b *= 2 {
		out = append(out, b)
	}
	return append(out, update)
}

// Trains says what is trained.
type Trains string

// What is trained.
const (
	AllWeights Trains = "all weights"
	Adapters   Trains = "adapters"
)

// Row is a change of the table, and what it goes with.
type Row struct {
	Change
	// Cost is what it costs in quality: rows with less are preferred.
	Cost Cost
	// Edge says that it moves the edge of memory a little, and is worth a look only
	// there.
	Edge bool
	// Rounds says that small updates of weights are lost to rounding.
	Rounds bool
	// Policy says that where parameters are sharded, it is FSDP's policy of mixed
	// precision.
	Policy bool
	// Trains is what is trained with it, "" if it goes with both.
	Trains Trains
	// Kinds are the kinds of parallelism that it goes with, "" for one GPU; nil if all.
	Kinds []workload.ParallelKind

	on     func(c *gpu.Card) bool          // nil if every card can do it
	alters func(w *workload.Workload) bool // whether it would change a workload, and for the better
}

// Cost is what a change costs in quality.
type Cost int

// The costs, in the order of preference.
const (
	Nothing      Cost = iota // the same gradients, but for the order of additions
	Rounding                 // of activations, as autocast does
	State                    // of the optimizer, in 8 bits
	Weights                  // in 16 bits: small updates are lost
	PartOfModel              // adapters are trained in place of the weights
	OtherUpdates             // another optimizer, which needs another learning rate
)

// Keys is how many keys a row sets.
func (r Row) Keys() int { return len(r.Patch) }

// On reports whether a card can do it.
func (r Row) On(c *gpu.Card) bool { return r.on == nil || r.on(c) }

// With reports whether it goes with a kind of parallelism, "" for one GPU.
func (r Row) With(kind workload.ParallelKind) bool {
	return r.Kinds == nil || slices.Contains(r.Kinds, kind)
}

// Applies reports whether a row changes a workload on a card.
func (r Row) Applies(w *workload.Workload, c *gpu.Card) bool {
	return r.On(c) && r.With(kindOf(w)) && r.Alters(w)
}

// Alters reports whether a row would change a workload, and for the better.
func (r Row) Alters(w *workload.Workload) bool { return r.alters(w) }

func kindOf(w *workload.Workload) workload.ParallelKind {
	if w.Parallel == nil {
		return ""
	}
	return w.Parallel.Kind
}

// Axis are rows of which at most one is taken.
type Axis []Row

// sets reports whether a row sets a key that is given, which stays.
func (r Row) sets(given []string) bool {
	return slices.ContainsFunc(given, func(key string) bool { _, sets := r.Patch[key]; return sets })
}

// Open are the rows that a question leaves open, by axis: those that set no key that is
// given. Adapters are left out where all weights are to be trained.
func Open(given []string, full bool) []Axis {
	var out []Axis
	for _, a := range Table {
		open := slices.DeleteFunc(slices.Clone(a), func(r Row) bool { return r.sets(given) || full && r.Trains == Adapters })
		if len(open) > 0 {
			out = append(out, open)
		}
	}
	return out
}

// Given are the keys of a draft that changes would set.
func Given(d workload.Draft) (out []string) {
	for key := range d {
		if slices.ContainsFunc(slices.Concat(Table...), func(r Row) bool { return r.sets([]string{key}) }) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}
