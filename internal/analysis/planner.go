package analysis

import (
	"errors"
	"strings"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/invalid"
	"memorymark/internal/predict"
	"memorymark/internal/search"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// planner answers a request from predictions.
type planner struct {
	Request
	w      *workload.Workload // with the limit that follows from the request
	run    *predict.Batches
	looked map[int64]Result // by batch

	fastest int64 // batch that was looked at, once knee has
}

func newPlanner(r Request) (*planner, error) {
	if p := r.Workload.Parallel; p != nil && p.Kind == workload.Pipeline {
		return nil, invalid.At("parallel", errors.New("the largest batch of a pipeline is not looked for; memorymark predict says what each stage takes at a batch"))
	}
	limit := predict.Limit(r.Workload, r.Card) - r.Reserve
	if limit <= 0 {
		return nil, &NothingLeftError{Has: limit + r.Reserve, Reserve: r.Reserve}
	}
	p := plannerOf(r, r.Workload.WithLimit(limit), r.Card)
	if p.HoursPerYear == 0 {
		p.HoursPerYear = DefaultHours
	}
	return p, nil
}

// plannerOf returns a planner for a workload with its limit on a card.
func plannerOf(r Request, w *workload.Workload, card *gpu.Card) *planner {
	r.Card = card
	return &planner{Request: r, w: w, run: predict.NewBatches(w, card, r.Work), looked: make(map[int64]Result)}
}

// unit is the step from a batch to the next.
func (p *planner) unit() int64 { return max(p.MultipleOf, 1) }

// limit is the most that PyTorch may use.
func (p *planner) limit() bytesize.Bytes { return predict.Limit(p.w, p.Card) }

// margin is what must be left of the limit for a verdict of fits.
func (p *planner) margin() bytesize.Bytes { return predict.MarginOf(p.Workload, p.Card) }

// largest is the largest batch that trains while the next one does not. It is
// never below the present batch if that trains: where fitting is patchy, that
// may be beyond the edge.
func (p *planner) largest(run *predict.Batches) (int64, error) {
	o := search.Options{MultipleOf: p.MultipleOf}
	r, err := run.Largest(o)
	if err != nil {
		return 0, err
	}
	if p.w.Batch <= r.Largest || p.w.Batch%p.unit() != 0 || !run.FitsWithin(p.w.Batch, p.limit()) {
		return r.Largest, nil
	}
	o.Start = p.w.Batch
	if r, err = run.Largest(o); err != nil {
		return 0, err
	}
	return r.Largest, nil
}

// answer begins an answer with what does not depend on batches.
func (p *planner) answer(largest int64) *Answer {
	a := &Answer{
		ID: p.w.ID, ModelName: p.w.Name(), Device: "cuda", Engine: evidence.Predicted,
		GPUName: p.Card.Name, GPUTotal: int64(p.Card.Memory.Bytes), GPUTotalGB: p.Card.Memory.Bytes.GiB(),
		OptimalBatch: largest, CurrentBatch: p.w.Batch, SpeedupBasis: evidence.Predicted, HoursPerYear: p.HoursPerYear,
		Provenance: Provenance{
			PyTorch: p.w.Libraries().Torch.String(), Transformers: p.w.Libraries().Transformers.String(),
			Time: time.Now().UTC().Truncate(time.Second), Workload: p.Workload,
		},
	}
	limit := p.limit()
	a.Limit, a.LimitGB, a.Margin = int64(limit), limit.GiB(), int64(p.margin())
	a.setPrice(p.PricePerHour, p.Card)
	return a
}

// look simulates a batch, once.
func (p *planner) look(batch int64) (Result, error) {
	if r, ok := p.looked[batch]; ok {
		return r, nil
	}
	s, err := p.run.Process(batch)
	if err != nil {
		return Result{}, err
	}
	peak := s.Peak()
	r := Result{
		Batch: batch, Success: s.Fits(), Verdict: s.Verdict(p.margin()), Left: new(int64(s.Left())),
		Memory: int64(peak.PeakAllocated), MemoryGB: peak.PeakAllocated.GiB(),
		Reserved: int64(peak.PeakReserved), ReservedGB: peak.PeakReserved.GiB(),
	}
	if r.Success { // a batch that does not train has no speed
		r.Throughput = p.Throughput(batch, s.StepSeconds())
	}
	p.looked[batch] = r
	return r, nil
}

// fits reports whether a batch trains.
func (p *planner) fits(batch int64) (bool, error) {
	r, err := p.look(batch)
	return r.Success, err
}

// complete adds the other parts that were asked for, and the verdict in words. Parts for
// which no work is left are missing, and the answer says so.
func (p *planner) complete(a *Answer, largest int64) error {
	s, err := p.run.Process(largest)
	if err != nil {
		return err
	}
	p.keepBack()
	var others []predict.LoopPeak
	var missing []string
	for _, part := range []struct {
		name   string
		wanted bool
		add    func() error
	}{
		{"the batch worth using", true, func() error { return p.addRecommended(a, largest) }},
		{"batches between", true, func() error { return p.addOthers(a, largest) }},
		{"how memory grows", true, func() (err error) { a.Growth, err = p.growth(largest); return err }},
		{"how to accumulate", p.GlobalBatch > 0, func() error {
			a.Accumulation = accumulate(p.GlobalBatch, largest, p.trainsAccumulated)
			return nil
		}},
		{"full fine-tuning", p.w.Adapter != nil, func() (err error) { a.FullFineTuning, err = p.fullFineTuning(); return err }},
		{"other loops", len(p.w.OtherLoops()) > 0, func() (err error) { others, err = s.OtherLoops(); return err }},
	} {
		if !part.wanted {
			continue
		}
		before := *a
		err := part.add()
		if err == nil {
			err = p.Work.Err() // whatever was found by then
		}
		switch {
		case errors.Is(err, workbudget.ErrTooMuch):
			*a, missing = before, append(missing, part.name)
		case err != nil:
			return err
		}
	}
	if p.w.Program == nil {
		a.setRecipe(p.w)
	}
	stated := predict.StatedOf(p.w, s.Parameters(), p.Card)
	a.Accuracy = predict.AccuracyOf(p.w)
	a.explain(p.unit(), append(predict.Caveats(p.w, p.Card), predict.Races(p.w)...))
	a.explainLengths(p.w)
	a.explainLoop(others, p.w.Loop)
	a.setBill(p.Question, p.w)
	a.explainCost()
	a.explainFull(p.unit())
	if len(missing) > 0 {
		a.note("careful", "the answer lacks what takes too much computation here: %s", strings.Join(missing, ", "))
	}
	if !a.CurrentFits && p.w.Program == nil { // a program of the user's own has settings of its own
		var sentence string
		if a.ToFit, sentence, err = p.remedies(); err != nil {
			return err
		}
		a.note("changes", "%s", sentence)
	}
	if p.Changes && p.w.Program == nil {
		a.Changes = p.single()
	}
	a.noteAll(AboutAccuracy, stated.OfBatches())
	return nil
}

// keepBack has what follows end without ending the answer, if the work for it runs out.
func (p *planner) keepBack() {
	p.Work = p.Work.KeepingBack(1)
	p.run.Spend(p.Work)
}

func (p *planner) addRecommended(a *Answer, largest int64) (err error) {
	if a.Recommended, a.Tight, err = p.recommend(largest); err != nil {
		return err
	}
	return errors.Join(p.addResult(a, a.Recommended), p.addResult(a, p.fastest))
}

// addOthers adds batches between the present and the largest, and which of them fail.
func (p *planner) addOthers(a *Answer, largest int64) (err error) {
	for _, batch := range Between(min(p.w.Batch, largest), largest) {
		if err := p.addResult(a, batch); err != nil {
			return err
		}
	}
	a.FailsBelow, err = p.failsBelow(largest)
	return err
}

// largestPart is the largest cause at the peak.
func largestPart(s *predict.Process) predict.Part {
	var largest predict.Part
	b := s.Breakdown()
	for _, part := range b.Parts() {
		if part.Bytes > largest.Bytes {
			largest = part
		}
	}
	return largest
}

func gib(n int64) float64 { return bytesize.Bytes(n).GiB() }

func percent(n, of int64) float64 { return figure.Round(100*float64(n)/float64(of), 1) }
