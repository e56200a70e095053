package plan

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/recipe"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// question is about a small model on some cards.
func question(t *testing.T, draft, cards string) Question {
	t.Helper()
	d, err := workload.ParseDraft([]byte(draft))
	if err != nil {
		t.Fatal(err)
	}
	held, err := ParseHoldings(cards, gpu.Find)
	if err != nil {
		t.Fatal(err)
	}
	for i := range held {
		held[i].Count = 0 // as many as can be rented
	}
	return Question{Draft: d, Cards: held}
}

func make1(t *testing.T, q Question) *Plan {
	t.Helper()
	p, err := Make(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// predicted is a prediction of a draft.
func predicted(t *testing.T, d workload.Draft, card *gpu.Card) *predict.Prediction {
	t.Helper()
	w, err := d.Workload()
	if err != nil {
		t.Fatal(err)
	}
	p, err := predict.Predict(w, card, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The bounds leave nothing out: whatever is faster than what was found does not
// fit, and where nothing was found nothing does.
func TestBoundsLeaveNothingOut(t *testing.T) {
	q := question(t, `{"model": "gpt2", "sequence": 1024}`, "rtx-4060, t4")
	q.MaxGPUs, q.GlobalBatch = 2, 32
	base, err := q.Draft.Workload()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlanner(q, base)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := errors.Join(p.estimate(ctx), p.simulate(ctx)); err != nil {
		t.Fatal(err)
	}
	ruledOut := 0
	for _, s := range p.sites {
		for _, c := range s.candidates {
			if s.found != nil && c.class() >= s.found.class() {
				continue
			}
			w, err := p.workload(c.setup, c.batch, c.passes)
			if err != nil {
				t.Fatal(err)
			}
			ruledOut++
			if sim, err := predict.Run(w.WithLimit(s.limit), s.card, predict.Options{}); err == nil && sim.Verdict(s.margin) == predict.Fits {
				t.Errorf("%d × %s: %s with batch %d leaves a margin, but the plan has %+v", s.gpus, s.card.ID, c, c.batch, s.found)
			}
		}
	}
	if ruledOut == 0 {
		t.Error("the bounds ruled nothing out")
	}
}

// What a question says stays.
func TestGivenStays(t *testing.T) {
	q := question(t, `{"model": "gpt2", "precision": "tf32", "optimizer": "sgd"}`, "rtx-4090")
	q.Full, q.MaxGPUs = true, 2
	for _, o := range make1(t, q).Options {
		if o.Workload.Precision != workload.TF32 || o.Workload.Optimizer != workload.SGD || o.Workload.Adapter != nil {
			t.Errorf("%s is not what was asked for", o.Setup)
		}
	}
}

func TestPicks(t *testing.T) {
	q := question(t, `{"model": "gpt2"}`, "t4, a10, h100")
	p := make1(t, q)
	if p.Simplest == nil || len(p.Simplest.Workload.Config.Architecture) == 0 || p.Simplest.Setup != "as it is" {
		t.Errorf("the simplest is %+v; a T4 trains GPT-2 as it is", p.Simplest)
	}
	for _, o := range p.Options {
		if *o.Dollars < *p.Cheapest.Dollars || o.Days < p.Fastest.Days {
			t.Errorf("%s is cheaper than %s or faster than %s", o.Setup, p.Cheapest.Setup, p.Fastest.Setup)
		}
	}
	q.Within = Budget{Days: p.Fastest.Days}
	if within := make1(t, q); len(within.Options) != 1 || within.Options[0].GPU != p.Fastest.GPU {
		t.Errorf("within the days of the fastest there are %d options", len(within.Options))
	}
}

// Where there is no work for simulating every option, the best ones are simulated all
// the same, and the others are there and marked.
func TestBestFirst(t *testing.T) {
	q := question(t, `{"model": "gpt2", "sequence": 1024}`, "t4, l4, a10, rtx-4090, a100-80gb, h100, h200")
	q.MaxGPUs = 8
	whole := make1(t, q)
	if n := simulated(whole.Options); n != len(whole.Options) {
		t.Fatalf("%d of %d options were simulated without a bound", n, len(whole.Options))
	}
	some := false // of the options were simulated, and the best among them
	for events := int64(5e6); ; events += events / 5 {
		q.Work = workbudget.New(events, nil)
		p, err := Make(context.Background(), q, nil)
		if errors.Is(err, workbudget.ErrTooMuch) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		compareOptions(t, p, whole)
		n := simulated(p.Options)
		if n == len(p.Options) {
			break
		}
		if !strings.Contains(p.Notes[0], "the best first") {
			t.Errorf("the notes do not say that %d of %d options were simulated: %s", n, len(p.Options), p.Notes[0])
		}
		some = some || 4*n < 3*len(p.Options) && reflect.DeepEqual(best(p), best(whole))
	}
	if !some {
		t.Error("no work was enough for the best options, and not for the others")
	}
}

// best are the best options of a plan. Whether one is on the frontier depends on the
// others, which are not compared.
func best(p *Plan) (out []Option) {
	for _, o := range []*Option{p.Cheapest, p.Fastest, p.Whole, p.Simplest} {
		if o == nil { // there was no work for it
			continue
		}
		one := *o
		one.Frontier = false
		out = append(out, one)
	}
	return out
}

// compareOptions compares options with those that were all simulated.
func compareOptions(t *testing.T, p, whole *Plan) {
	t.Helper()
	all := apart(whole.Options)
	for _, o := range apart(p.Options) {
		i := slices.IndexFunc(all, func(w Option) bool { return w.GPU == o.GPU && w.GPUs == o.GPUs && w.Trains == o.Trains })
		if o.Simulated && o.Verdict == predict.Tight && simulated(p.Options) < len(p.Options) {
			checkTight(t, &o) // what would leave a margin may be among those that no work was left for
			continue
		}
		if o.Simulated && (i < 0 || !reflect.DeepEqual(o, all[i])) {
			t.Errorf("%d × %s, %s is another option than without a bound", o.GPUs, o.GPU, o.Setup)
		}
		if !o.Simulated && o.Peak.Reserved > o.Peak.Limit*11/10 {
			t.Errorf("%d × %s, %s needs %v of %v", o.GPUs, o.GPU, o.Setup, o.Peak.Reserved, o.Peak.Limit)
		}
	}
	for _, o := range []*Option{p.Cheapest, p.Fastest, p.Whole, p.Simplest} {
		if o != nil && !o.Simulated {
			t.Errorf("%d × %s, %s is one of the best, and was not simulated", o.GPUs, o.GPU, o.Setup)
		}
	}
}

// checkTight compares an option with the prediction of its workload.
func checkTight(t *testing.T, o *Option) {
	t.Helper()
	card := workloadtest.Card(t, o.GPU)
	if q, err := predict.Predict(o.Workload, card, predict.Options{}); err != nil || q.Verdict != o.Verdict {
		t.Errorf("%d × %s, %s is %s, and predicted otherwise: %v", o.GPUs, o.GPU, o.Setup, o.Verdict, err)
	}
}

// A plan for cards that the user has is not about money.
func TestMine(t *testing.T) {
	q := question(t, `{"model": "gpt2"}`, "rtx-4090")
	q.Cards[0].Count = 2
	p := make1(t, q)
	for _, o := range p.Options {
		if o.Dollars != nil || o.GPUs > 2 {
			t.Errorf("%d × %s for %v dollars", o.GPUs, o.GPU, o.Dollars)
		}
	}
	if p.Cheapest != nil || p.Fastest == nil || p.Fastest.GPUs != 2 {
		t.Errorf("cheapest %v, fastest %+v", p.Cheapest, p.Fastest)
	}
}

// What does not fit says why, and needs what a prediction says.
func TestMisfits(t *testing.T) {
	q := question(t, `{"model": "llama-3.1-8b"}`, "rtx-4060")
	q.Full, q.MaxGPUs = true, 1
	p := make1(t, q)
	if len(p.Options) != 0 || len(p.Misfits) != 1 {
		t.Fatalf("options %v, misfits %+v", p.Options, p.Misfits)
	}
	m := p.Misfits[0]
	w := question(t, `{"model": "llama-3.1-8b", "checkpointing": true, "precision": "bf16", "optimizer": "adamw-8bit", "batch": 64}`, "rtx-4060")
	if m.Setup != "checkpointing, bf16 weights, 8-bit AdamW" || !strings.HasPrefix(m.Reason, m.Setup+" with batch 64 needs "+m.Needs.String()+", ") {
		t.Errorf("%+v", m)
	}
	if got := predicted(t, recipe.AsWritten(w.Draft), q.Cards[0].Card); got.Fits || got.PeakReserved() != m.Needs {
		t.Errorf("needs %v, predicted is %v", m.Needs, got.PeakReserved())
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	q := question(t, `{"model": "llama-3.1-8b", "sequence": 2048}`, "h100")
	_, err := Make(ctx, q, func(done, _ int) {
		if done == 2 {
			cancel()
		}
		if done > 20 {
			t.Error("it goes on")
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err is %v", err)
	}
}

// A plan that takes more than it may ends with that, and pieces take turns.
func TestBudgetOfWork(t *testing.T) {
	q := question(t, `{"model": "gpt2"}`, "t4, h100")
	q.Work = workbudget.New(200_000, nil)
	if _, err := Make(context.Background(), q, nil); !errors.Is(err, workbudget.ErrTooMuch) {
		t.Errorf("err is %v", err)
	}
	turns := errors.New("it is not your turn")
	q.Work, q.Piece = nil, func(context.Context, func() error) error { return turns }
	if _, err := Make(context.Background(), q, nil); !errors.Is(err, turns) {
		t.Errorf("err is %v", err)
	}
}

// A plan is about what it chooses.
func TestPlanChooses(t *testing.T) {
	for _, draft := range []string{`{"model": "gpt2", "batch": 4}`, `{"model": "gpt2", "parallel": {"kind": "ddp", "gpus": 2}}`} {
		if _, err := Make(context.Background(), question(t, draft, "t4"), nil); err == nil || !strings.Contains(err.Error(), "a plan chooses") {
			t.Errorf("%s: %v", draft, err)
		}
	}
}

// Prices that cannot be compared are not compared unless the user names the
// card, and then a note says so.
func TestPricesAreComparable(t *testing.T) {
	for _, h := range Cards() {
		if h.Card.Price.Market != listPrice {
			t.Errorf("%s has a price of %s", h.Card.ID, h.Card.Price.Market)
		}
	}
	q := question(t, `{"model": "gpt2"}`, "rtx-3060, rtx-4090")
	q.MaxGPUs = 1
	if notes := strings.Join(make1(t, q).Notes, " "); !strings.Contains(notes, "Vast.ai (marketplace, 2025-10-27)") || !strings.Contains(notes, "different markets") {
		t.Errorf("notes: %s", notes)
	}
}

// Progress is a share of all: the number of parts is known from the beginning,
// and all are done in the end.
func TestProgress(t *testing.T) {
	var parts, last int
	_, err := Make(t.Context(), question(t, `{"model": "gpt2"}`, "t4, h100"), func(done, of int) {
		if done != last+1 || parts > 0 && of != parts {
			t.Errorf("%d of %d after %d of %d", done, of, last, parts)
		}
		last, parts = done, of
	})
	if err != nil || last == 0 || last != parts {
		t.Errorf("%d of %d parts are done, %v", last, parts, err)
	}
}

// apart is options without what says how they compare with the others of their plan.
func apart(options []*Option) []Option {
	out := make([]Option, len(options))
	for i, o := range options {
		out[i] = *o
		out[i].Frontier = false
	}
	return out
}
