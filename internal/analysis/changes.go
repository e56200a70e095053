package analysis

import (
	"errors"
	"fmt"
	"strings"

	"memorymark/internal/change"
	"memorymark/internal/predict"
	"memorymark/internal/recipe"
	"memorymark/internal/workbudget"
)

// Effect is what a single change does to the largest batch.
type Effect struct {
	change.Change
	OptimalBatch int64 `json:"optimal_batch_size"`
	Throughput
	Error string `json:"error,omitempty"` // why it cannot be made
}

// ChangeSet is a set of changes with which the present batch trains.
type ChangeSet struct {
	Changes []change.Change `json:"changes"`
	Trains  change.Trains   `json:"trains" enum:"all weights,adapters"`
	Verdict predict.Verdict `json:"verdict" enum:"fits,tight" doc:"tight: less than the margin is left"`
	Memory  int64           `json:"memory_bytes"`
	// Reserved is what PyTorch holds at the most.
	Reserved int64 `json:"reserved_bytes"`
	Throughput
}

// single says what each single change would do, adapters and the split of the batch
// aside: they are no setting.
func (p *planner) single() []Effect {
	var out []Effect
	for _, axis := range change.Open(nil, true) {
		for _, r := range axis {
			if !r.Applies(p.w, p.Card) {
				continue
			}
			out = append(out, p.effect(r.Change))
		}
	}
	return out
}

// effect says what a change would do.
func (p *planner) effect(made change.Change) Effect {
	e := Effect{Change: made}
	if err := p.try(&e); err != nil {
		e.Error = err.Error()
	}
	return e
}

func (p *planner) try(e *Effect) error {
	d, err := p.w.Draft(p.Given)
	if err != nil {
		return err
	}
	w, err := change.Apply(d, []change.Change{e.Change}).WorkloadWithin(p.Work)
	if err != nil {
		return err
	}
	with := plannerOf(p.Request, w, p.Card)
	if e.OptimalBatch, err = with.largest(with.run); err != nil || e.OptimalBatch == 0 {
		return err
	}
	r, err := with.look(e.OptimalBatch)
	e.Throughput = r.Throughput
	return err
}

// remedies are the smallest sets of changes with which the present batch trains, and a
// sentence that names them. If there is no work left to search them, the sentence says so:
// the rest of the answer is ready.
func (p *planner) remedies() (sets []ChangeSet, sentence string, err error) {
	if sets, err = p.leastSets(); errors.Is(err, workbudget.ErrTooMuch) {
		return nil, fmt.Sprintf("which changes make batch %d fit takes too much computation to search here; memorymark fit searches longer", p.w.Batch), nil
	}
	return sets, remedy(p.w.Batch, sets), err
}

func (p *planner) leastSets() ([]ChangeSet, error) {
	d, err := p.Workload.Draft(p.Given)
	if err != nil {
		return nil, err
	}
	found, err := change.Least(change.Question{
		Draft: d, Card: p.Card, Limit: p.limit(), Margin: p.margin(), Given: p.Given, Work: p.Work,
		Forms: []change.Form{change.AsAsked, recipe.AsWritten}, // those of fit, so that both name the same sets
	})
	if err != nil {
		return nil, err
	}
	out := []ChangeSet{}
	for _, s := range found.Sets {
		out = append(out, ChangeSet{
			Changes: s.Changes, Trains: s.Trains, Verdict: s.Verdict, Memory: int64(s.Peak.PeakAllocated), Reserved: int64(s.Peak.PeakReserved),
			Throughput: p.Throughput(p.w.Batch, s.StepSeconds),
		})
	}
	return out, nil
}

// inSentence is the most sets that a sentence names, the preferred ones.
const inSentence = 6

// remedy says in a sentence which changes make the present batch fit.
func remedy(batch int64, helps []ChangeSet) string {
	if len(helps) == 0 {
		return fmt.Sprintf("no change of precision, optimizer, checkpointing, allocator or adapters makes batch %d fit, alone or combined", batch)
	}
	texts, single := make([]string, len(helps)), false
	for i, r := range helps {
		texts[i] = change.Labels(r.Changes)
		if r.Verdict == predict.Tight {
			texts[i] += " (tight)"
		}
		single = single || len(r.Changes) == 1
	}
	if more := len(texts) - inSentence; more > 1 {
		texts = append(texts[:inSentence], fmt.Sprintf("one of %d other sets (--json lists them)", more))
	}
	fits := fmt.Sprintf("batch %d would fit with %s", batch, strings.Join(texts, ", or "))
	if !single {
		return "no single change is enough; " + fits
	}
	return fits
}
