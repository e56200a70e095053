package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/steptime"
	"memorymark/internal/workbudget"
)

// Emulation runs the steps of a family that is not modelled, on cards that are not
// there. A run takes seconds, so that a plan makes at most MaxProbes of them: a sketch
// of each usual setup, and with the others it checks its best options on their cards.
type Emulation interface {
	// Sketch runs two passes of each batch in one process, on a card with memory for
	// them.
	Sketch(t change.Trial, card *gpu.Card, batches []int64) (*Sketch, error)
	// On returns what runs the steps of a trial on a card.
	On(card *gpu.Card) change.Prober
}

// Sketch is what batches of a setup take without a limit.
type Sketch struct {
	Parameters int64
	Batches    map[int64]SketchedBatch // those that ran: no card has memory for the others
	Notes      []string                // what to know of how they ran
}

// SketchedBatch is an update of two passes.
type SketchedBatch struct {
	Allocated bytesize.Bytes // at the peak
	Work      *steptime.Work
}

// needs is what a batch takes at least. Of a single pass it is more by the gradients:
// there are none yet when it takes the most. A batch that no card has memory for was
// not run.
func (s *Sketch) needs(batch int64) bytesize.Bytes {
	if b, ran := s.Batches[batch]; ran {
		return b.Allocated
	}
	return math.MaxInt64
}

// seconds are how long an update takes.
func (s *Sketch) seconds(card *gpu.Card, batch, passes int64) predict.Seconds {
	both, update := s.Batches[batch].Work.Split()
	n := float64(passes) / 2
	return predict.Seconds{Computing: n*both.Seconds(card) + update.Seconds(card), Range: both.Range(card).Times(n).Plus(update.Range(card))}
}

// runs are those that an emulated plan has made.
type runs struct {
	Emulation
	made   int
	took   map[placed]*took // nil for what does not fit
	failed []*setup
	left   int // setups that there was no run left for
	notes  []string
}

// next takes one of the runs that are left.
func (r *runs) next() error {
	if r.made == MaxProbes {
		return workbudget.ErrTooMuch
	}
	r.made++
	return nil
}

// fail notes that a setup cannot be run.
func (r *runs) fail(s *setup, on string, err error) {
	why, _, _ := strings.Cut(err.Error(), "\n") // Python's stack follows
	r.notes = append(r.notes, fmt.Sprintf("%s was not tried%s: %s", s, on, why))
}

// contains reports whether a setup has all changes of one that cannot be run.
func (r *runs) contains(s *setup) bool {
	return slices.ContainsFunc(r.failed, func(f *setup) bool {
		return !slices.ContainsFunc(f.chosen, func(own change.Row) bool {
			return !slices.ContainsFunc(s.chosen, func(r change.Row) bool { return r.Label == own.Label })
		})
	})
}

// sketch runs the usual setups on one card. What is wrong with the first, which has the
// fewest changes, is wrong with the question.
func (p *planner) sketch(ctx context.Context, card *gpu.Card) error {
	known := make(map[string]*Sketch)
	for _, s := range p.distinctSetups() {
		key := strings.Replace(s.String(), "fp16 autocast", "bf16 autocast", 1) // it allocates as much
		sketch := known[key]
		if sketch == nil {
			if p.runs.contains(s) {
				continue
			}
			var err error
			sketch, err = p.sketchOf(s, card)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, workbudget.ErrTooMuch):
				p.runs.left++
				continue
			case err != nil && len(known) == 0:
				return err
			case err != nil:
				p.runs.fail(s, "", err)
				p.runs.failed = append(p.runs.failed, s)
				continue
			}
			known[key] = sketch
		}
		if len(sketch.Batches) == 0 {
			p.runs.notes = append(p.runs.notes, fmt.Sprintf("%s with batch 1 needs more than any card has.", s))
			continue
		}
		p.outlines = append(p.outlines, &outline{setup: s, sketch: sketch})
	}
	if len(p.outlines) == 0 {
		return errors.New("no usual way to train it fits any card, even with batch 1")
	}
	return nil
}

func (p *planner) sketchOf(s *setup, card *gpu.Card) (*Sketch, error) {
	w, err := p.workload(s, 1, 2)
	if err != nil {
		return nil, err
	}
	if err := p.runs.next(); err != nil {
		return nil, err
	}
	sketch, err := p.runs.Sketch(change.Trial{Workload: w, Changes: s.made()}, card, batches(p.q.GlobalBatch, 1))
	if err != nil {
		return nil, err
	}
	for _, note := range sketch.Notes {
		if !slices.Contains(p.runs.notes, note) {
			p.runs.notes = append(p.runs.notes, note)
		}
	}
	return sketch, nil
}

// emulate runs a candidate on the card of a site: nil if it does not fit.
func (p *planner) emulate(c *candidate, at *site) (*took, error) {
	if t, known := p.runs.took[placed{at, c}]; known {
		return t, nil
	}
	w, err := p.workload(c.setup, c.batch, c.passes)
	if err != nil {
		return nil, err
	}
	if err := p.runs.next(); err != nil {
		return nil, err
	}
	steps, err := p.runs.On(at.card)(change.Trial{Workload: w.WithLimit(at.limit), Margin: at.margin, Changes: c.allChanges()})
	var t *took
	switch {
	case p.work.Err() != nil:
		return nil, p.work.Err()
	case err != nil:
		p.runs.fail(c.setup, " on "+at.card.ID, err)
	case steps.Verdict != predict.DoesNotFit:
		p.simulated.Add(1)
		t = &took{steps.Peak.PeakAllocated, steps.Peak.PeakReserved, steps.Verdict, predict.Seconds{Computing: steps.StepSeconds}}
		if steps.StepRange != nil {
			t.seconds.Range = *steps.StepRange
		}
	}
	p.runs.took[placed{at, c}] = t
	return t, nil
}

// emulateRest runs what costs the least first, where it was not run for the best.
func (p *planner) emulateRest(ctx context.Context) error {
	rest := slices.DeleteFunc(slices.Clone(p.sites), func(s *site) bool { return len(s.candidates) == 0 })
	slices.SortStableFunc(rest, func(a, b *site) int {
		return cmp.Compare(p.cost(placed{a, a.candidates[0]}), p.cost(placed{b, b.candidates[0]}))
	})
	return p.findAll(ctx, rest, p.newSimulations())
}

// emulatedNotes say what was run and what was not.
func (p *planner) emulatedNotes(out *Plan) []string {
	notes := []string{fmt.Sprintf("PyTorch ran %d processes of at most %d: one for each way to train, and the best options on their cards.", p.runs.made, MaxProbes)}
	if n := simulated(out.Options); n < len(out.Options) {
		notes[0] += fmt.Sprintf(" %d of %d options ran on their cards. The others may not fit, and their memory is a lower bound; --cards with fewer cards runs more of them.", n, len(out.Options))
	}
	notes = append(notes,
		"Compared are checkpointing, 16 bits, 8-bit AdamW, LoRA and QLoRA on one GPU. Several GPUs are planned for modelled families only; memorymark fit tries other changes on one card.",
		"Times are by a time model of steps.")
	if p.runs.left > 0 {
		notes = append(notes, fmt.Sprintf("%d ways to train were not run.", p.runs.left))
	}
	return append(notes, p.runs.notes...)
}

// usualSetups are the changes that are worth a run together, by what is trained: all
// weights under autocast, and adapters on weights in 16 bits or, on a card without
// bfloat16, under autocast. Each row but the first comes with and without checkpointing.
var usualSetups = map[change.Trains][][]string{
	change.AllWeights: {{}, {"bf16 autocast"}, {"fp16 autocast"}, {"bf16 autocast", "8-bit AdamW"}, {"fp16 autocast", "8-bit AdamW"}},
	change.Adapters: {
		{"bf16 weights", "LoRA of rank 16"},
		{"fp16 autocast", "LoRA of rank 16"},
		{"bf16 weights", "QLoRA of rank 16", "4-bit weights"},
		{"QLoRA of rank 16 in fp16", "4-bit weights in fp16"},
	},
}

// usual are the usual setups, as far as the question leaves their changes open.
func (p *planner) usual() (out [][]change.Row) {
	open := change.Open(change.Given(p.q.Draft), p.q.Full)
	for _, trains := range []change.Trains{change.AllWeights, change.Adapters} {
		if trains == change.AllWeights && p.base.Adapter != nil || trains == change.Adapters && p.q.Full {
			continue
		}
		for _, labels := range usualSetups[trains] {
			for _, labels := range [][]string{labels, append([]string{"checkpointing"}, labels...)} {
				if rows := p.rowsOf(open, labels); !slices.ContainsFunc(out, func(other []change.Row) bool { return sameRows(rows, other) }) {
					out = append(out, rows)
				}
			}
		}
	}
	return out
}

// rowsOf are the rows of open axes that have a label and alter the question.
func (p *planner) rowsOf(open []change.Axis, labels []string) (out []change.Row) {
	for _, axis := range open {
		for _, r := range axis {
			if slices.Contains(labels, r.Label) && r.Alters(p.base) {
				out = append(out, r)
			}
		}
	}
	return out
}

func sameRows(a, b []change.Row) bool {
	return slices.EqualFunc(a, b, func(x, y change.Row) bool { return x.Label == y.Label })
}
