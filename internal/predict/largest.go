package predict

import (
	"math"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

// mostBatch bounds the search: no step of a billion samples is of interest.
const mostBatch = 1 << 30

// Runner runs a workload at different batches, each only once.
type Runner struct {
	w         *workload.Workload
	card      *gpu.Card
	effort    *effort.Effort
	processes map[way]*Process
	events    int  // that the processes hold
	latest    int  // that the latest one holds
	forgetful bool // it answers once, and what it keeps is given up then
}

// NewRunner returns a runner without a bound on its effort. The workload's own
// batch does not matter.
func NewRunner(w *workload.Workload, card *gpu.Card) *Runner {
	return &Runner{w: w, card: card, processes: make(map[way]*Process)}
}

// Within bounds what the runner may take, from now on.
func (r *Runner) Within(e *effort.Effort) *Runner {
	r.effort = e
	return r
}

// mostEvents bounds what a runner keeps, to a hundred megabytes.
const mostEvents = 2 << 20

// way is a batch, and how a race ends that its process has (Late).
type way struct {
	batch int64
	late  bool
}

func (r *Runner) process(batch int64) (*Process, error) { return r.processOf(way{batch: batch}) }

func (r *Runner) processOf(which way) (p *Process, err error) {
	if p = r.processes[which]; p != nil {
		return p, nil
	}
	defer recovered(r.w, &err)
	if r.events+r.latest > mostEvents { // before there is another
		clear(r.processes)
		r.events = 0
	}
	at := *r.w
	at.Batch = which.batch
	if p, err = run(&at, which.late, deviceOf(r.card), stepsFor(r.w), r.effort); err != nil {
		return nil, err
	}
	r.latest = p.events()
	r.events += r.latest
	r.processes[which] = p
	return p, nil
}

// Simulate runs a batch under the workload's limit, or what the card has.
func (r *Runner) Simulate(batch int64) (*Simulation, error) {
	p, err := r.process(batch)
	if err != nil {
		return nil, err
	}
	s, err := r.simulate(p)
	if err == nil && s.Fits() && races(r.w) {
		s.late, err = r.simulateLate(batch)
	}
	return s, err
}

// Predict says what a batch takes.
func (r *Runner) Predict(batch int64) (*Prediction, error) {
	r.forgetful = true
	defer r.forget()
	s, err := r.Simulate(batch)
	if err != nil {
		return nil, err
	}
	return s.Prediction()
}

// forget gives up what the runner keeps, so that the next one need not make it.
func (r *Runner) forget() {
	for _, p := range r.processes {
		p.forget()
	}
	clear(r.processes)
	r.events = 0
}

// FitsWithin reports whether a batch trains under a limit. One that cannot be
// predicted does not.
func (r *Runner) FitsWithin(batch int64, limit bytesize.Bytes) bool {
	fits, err := r.fits(batch, limit)
	return err == nil && fits
}

// fits reports whether a batch trains under a limit, whichever way a race ends.
func (r *Runner) fits(batch int64, limit bytesize.Bytes) (bool, error) {
	course, err := r.play(way{batch: batch}, limit)
	if err != nil || !course.Fits() || !races(r.w) {
		return err == nil && course.Fits(), err
	}
	course, err = r.play(way{batch, true}, limit)
	return err == nil && course.Fits(), err
}

// play plays a batch under a limit.
func (r *Runner) play(which way, limit bytesize.Bytes) (*allocator.Course, error) {
	p, err := r.processOf(which)
	if err != nil {
		return nil, err
	}
	s := Simulation{Process: p, Card: r.card, runner: r}
	return s.play(limit)
}

// Largest finds the largest batch that trains: three steps in a fresh process,
// on the simulated allocator, under the card's or the workload's limit.
//
// Fitting is not monotonic: what the first step leaves in the cache makes some
// sizes fail that are smaller than some that fit. So the search goes in two
// stages. Where a settled process runs out of memory is a clear edge; from
// there the answer is the next smaller size that survives a fresh process,
// while one more does not.
func (r *Runner) Largest(o search.Options) (*search.Result, error) {
	if o.Most == 0 {
		o.Most = mostBatch
	}
	if o.Start == 0 {
		settled, err := r.settledEdge(o)
		if err != nil {
			return nil, err
		}
		o.Start = max(settled, 1)
	}
	return search.NearestBelow(func(batch int64) (bool, error) { return r.fits(batch, Limit(r.w, r.card)) }, o)
}

// settledEdge is the largest batch whose steps fit once the process has
// settled, found by bisecting between powers of two, as people do by hand.
func (r *Runner) settledEdge(o search.Options) (int64, error) {
	line, err := r.line()
	if err != nil {
		return 0, err
	}
	limit := float64(Limit(r.w, r.card))
	found, err := search.Bisect(func(batch int64) (bool, error) {
		// Far from the edge the line is enough: fragmentation adds little to a
		// settled process, and nothing takes away from what is allocated.
		switch share := line.at(batch) / limit; {
		case share < 0.85:
			return true, nil
		case share > 1.03:
			return false, nil
		}
		p, err := r.process(batch)
		if err != nil {
			return false, err
		}
		s := Simulation{Process: p, Card: r.card, runner: r}
		course, err := allocator.PlaySettled(p.Trace(), s.options(Limit(r.w, r.card)), s.stages(), stepStage+1)
		return err == nil && course.Fits(), err
	}, search.Options{Start: line.reaches(limit), Most: o.Most, MultipleOf: o.MultipleOf})
	if err != nil {
		return 0, err
	}
	return found.Largest, nil
}

// batchPeak is the peak of allocated memory at a batch.
type batchPeak struct {
	batch int64
	bytes float64
}

// peakLine is the peak of allocated memory against the batch, through two of
// them.
type peakLine struct {
	batchPeak
	slope float64
}

func lineThrough(small, large batchPeak) peakLine {
	return peakLine{large, (large.bytes - small.bytes) / float64(large.batch-small.batch)}
}

func (l peakLine) at(batch int64) float64 { return l.bytes + l.slope*float64(batch-l.batch) }

// reaches is the batch at which the line reaches an amount, at least 1.
func (l peakLine) reaches(bytes float64) int64 {
	switch {
	case l.slope > 0:
		return int64(min(max((bytes-l.bytes)/l.slope+float64(l.batch), 1), mostBatch))
	case l.bytes > bytes:
		return 1
	default:
		return mostBatch
	}
}

const (
	// nearby is how far from where memory runs out a line may be drawn, as a share.
	nearby = 0.2
	// mostLonger is how many times as large as the last one the next batch may be.
	mostLonger = 16
)

// line draws the line near where memory runs out. Allocated memory is nearly a
// line in the batch, but only beyond the batches at which the optimizer's step
// is the peak, which does not know the batch. So the line is drawn through a
// batch that is below the limit and one that is above it, until they are close.
// Where the optimizer's step takes nearly all there is, lines end far below
// where memory runs out; then it is halved between the two.
func (r *Runner) line() (peakLine, error) {
	limit := float64(Limit(r.w, r.card))
	small, err := r.allocated(8)
	if err != nil {
		return peakLine{}, err
	}
	large, err := r.allocated(64)
	for halve := false; err == nil; halve = !halve {
		l := lineThrough(small, large)
		runsOut := l.reaches(limit)
		switch {
		case l.slope > 0 && isNear(runsOut, large.batch), small.bytes > limit && large.bytes > limit, large.batch == mostBatch:
			return l, nil
		case large.bytes <= limit: // further on
			small = large
			large, err = r.allocated(min(above(runsOut), mostLonger*large.batch, mostBatch))
			continue
		}
		between := above(runsOut)
		if halve {
			between = int64(math.Sqrt(float64(small.batch) * float64(large.batch)))
		}
		var next batchPeak
		if next, err = r.allocated(min(max(between, small.batch+1), large.batch-1)); next.bytes > limit {
			large = next
		} else {
			small = next
		}
	}
	return peakLine{}, err
}

// isNear reports whether two batches differ little.
func isNear(a, b int64) bool {
	return float64(a) >= (1-nearby)*float64(b) && float64(b) >= (1-nearby)*float64(a)
}

// above is a batch that is near another and a little larger.
func above(batch int64) int64 { return batch + max(batch/10, 1) }

// allocated is the peak of allocated memory at a batch, without a limit.
func (r *Runner) allocated(batch int64) (batchPeak, error) {
	course, err := r.play(way{batch: batch}, noLimit)
	if err != nil {
		return batchPeak{}, err
	}
	return batchPeak{batch, float64(course.PeakAllocated)}, nil
}
