package analysis

import (
	"math"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

// planner answers a request from predictions.
type planner struct {
	Request
	w   *workload.Workload // with the limit that follows from the request
	run *predict.Runner
}

func newPlanner(r Request) (*planner, error) {
	limit := predict.Limit(r.Workload, r.Card) - r.Reserve
	if limit <= 0 {
		return nil, &NothingLeftError{Has: limit + r.Reserve, Reserve: r.Reserve}
	}
	w := r.Workload.WithLimit(limit)
	p := &planner{Request: r, w: w, run: predict.NewRunner(w, r.Card)}
	if p.HoursPerYear == 0 {
		p.HoursPerYear = DefaultHours
	}
	return p, nil
}

func (p *planner) largest(run *predict.Runner) (int64, error) {
	r, err := run.Largest(search.Options{MultipleOf: p.MultipleOf})
	if err != nil {
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
			PyTorch: predict.PyTorchVersion, Transformers: predict.TransformersVersion,
			Time: time.Now().UTC().Truncate(time.Second), Workload: p.Workload,
		},
	}
	if known, ok := predict.StatedAccuracy(p.w.Config.Architecture); ok {
		a.Accuracy = &known
	}
	limit := predict.Limit(p.w, p.Card)
	a.Limit, a.LimitGB = int64(limit), limit.GiB()
	a.setPrice(p.PricePerHour, p.Card)
	return a
}

// setPrice takes the price that was given, or the catalog's.
func (a *Answer) setPrice(given float64, card *gpu.Card) {
	switch {
	case given > 0:
		a.PricePerHour = &given
	case card.Price != nil:
		a.PricePerHour = &card.Price.USDPerHour
		a.PriceSource = card.Price.Provider + ", " + card.Price.AsOf
	}
}

// look simulates a batch.
func (p *planner) look(batch int64) (Result, error) {
	s, err := p.run.Simulate(batch)
	if err != nil {
		return Result{}, err
	}
	peak := s.Peak()
	return Result{
		Batch: batch, Success: s.Fits(),
		Memory: int64(peak.PeakAllocated), MemoryGB: peak.PeakAllocated.GiB(),
		Reserved: int64(peak.PeakReserved), ReservedGB: peak.PeakReserved.GiB(),
		SamplesPerSecond: p.samplesPerSecond(batch, s.StepSeconds()),
	}, nil
}

// recommend is the smallest batch whose throughput is close to the best that
// fits. Throughput grows with the batch but for steps in between, so the best
// is that of the largest.
func (p *planner) recommend(largest int64) (int64, error) {
	speed, err := p.run.Speed(largest)
	if err != nil {
		return 0, err
	}
	unit := max(p.MultipleOf, 1)
	enough := worthwhile * speed.SamplesPerSecond(largest)
	low, high := int64(0), largest/unit
	for low+1 < high {
		mid := (low + high) / 2
		if speed.SamplesPerSecond(mid*unit) >= enough {
			high = mid
		} else {
			low = mid
		}
	}
	return high * unit, nil
}

// complete adds what was asked for besides.
func (p *planner) complete(a *Answer, largest int64) error {
	var err error
	if a.MemoryLine, err = p.run.MemoryLine(max(largest/2, 1)); err != nil {
		return err
	}
	if p.GlobalBatch > 0 {
		a.Accumulation = accumulate(p.GlobalBatch, largest)
	}
	if p.Changes {
		a.Changes = p.single()
	}
	return nil
}

// accumulate splits a global batch into the fewest equal parts that fit; if
// none divide it, the last part is smaller.
func accumulate(global, largest int64) *Accumulation {
	steps := (global + largest - 1) / largest
	for n := steps; n <= min(2*steps, global); n++ {
		if global%n == 0 {
			return &Accumulation{GlobalBatch: global, MicroBatch: global / n, Steps: n}
		}
	}
	return &Accumulation{GlobalBatch: global, MicroBatch: (global + steps - 1) / steps, Steps: steps}
}

// changes are what people can change without changing their model.
var changes = []struct {
	name string
	make func(w *workload.Workload) bool // false if it is so already
}{
	{"precision amp-bf16", func(w *workload.Workload) bool { return setTo(&w.Precision, workload.AMPBF16) }},
	{"precision bf16", func(w *workload.Workload) bool { return setTo(&w.Precision, workload.BF16) }},
	{"checkpointing", func(w *workload.Workload) bool { return setTo(&w.Checkpointing, true) }},
	{"optimizer_impl fused", func(w *workload.Workload) bool {
		return w.Optimizer != workload.NoOptimizer && setTo(&w.OptimizerImpl, workload.Fused)
	}},
	{"optimizer sgd", func(w *workload.Workload) bool {
		return w.Optimizer != workload.NoOptimizer && setTo(&w.Optimizer, workload.SGD)
	}},
	{"expandable_segments", func(w *workload.Workload) bool { return setTo(&w.ExpandableSegments, true) }},
}

func setTo[T comparable](field *T, value T) bool {
	changed := *field != value
	*field = value
	return changed
}

// single says what each single change would do.
func (p *planner) single() []Change {
	var out []Change
	for _, change := range changes {
		w := *p.w
		if !change.make(&w) {
			continue
		}
		c := Change{Name: change.name}
		run := predict.NewRunner(&w, p.Card)
		var err error
		if c.OptimalBatch, err = p.largest(run); err == nil && c.OptimalBatch > 0 {
			var s *predict.Simulation
			if s, err = run.Simulate(c.OptimalBatch); err == nil {
				c.SamplesPerSecond = p.samplesPerSecond(c.OptimalBatch, s.StepSeconds())
			}
		}
		if err != nil {
			c.Error = err.Error()
		}
		out = append(out, c)
	}
	return out
}

// tooSmall explains why nothing fits.
func (p *planner) tooSmall() error {
	s, err := p.run.Simulate(max(p.MultipleOf, 1))
	if err != nil {
		return err
	}
	e := &TooSmallError{Card: p.Card, Limit: s.Limit, Needs: s.Peak().PeakReserved, Largest: largestPart(s)}
	for _, c := range p.single() {
		if c.OptimalBatch > 0 {
			e.Helps = append(e.Helps, c)
		}
	}
	return e
}

// largestPart is the largest cause at the peak.
func largestPart(s *predict.Simulation) predict.Part {
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

func percent(n, of int64) float64 { return round(100*float64(n)/float64(of), 1) }

func round(x float64, places int) float64 {
	scale := math.Pow(10, float64(places))
	return math.Round(x*scale) / scale
}
