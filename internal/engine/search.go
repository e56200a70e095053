package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

// Measurement is where real steps run for a request, and how.
type Measurement struct {
	Session   *measure.Session
	Ahead     *Ahead               // what was predicted while PyTorch was imported; may be nil
	User      *measure.UserModel   // trained in place of the workload's model
	MaxProbes int                  // of the search; 0 is DefaultProbes
	NoTiming  bool                 // find the largest batch only
	Progress  func(MeasuringEvent) // called as it goes, never twice at once; may be nil
}

// DefaultProbes is enough for a search up to maxMeasured, whatever is guessed: to
// double to a power of two, and to bisect from there. Most searches take a few.
const DefaultProbes = 44

// maxMeasured is the largest batch that is tried.
const maxMeasured = 1 << 20

// confirmSteps are the full steps that a batch must survive in a fresh process.
// The optimizer's state comes with the first one, and what it leaves between
// cached blocks shows in the second.
const confirmSteps = 3

// UnfinishedError says that measuring ended early, and what was known by then.
type UnfinishedError struct {
	Survived int64 // the largest batch that survived, 0 if none was confirmed
	Probes   []analysis.Probe
	Err      error
}

func (e *UnfinishedError) Error() string {
	if e.Survived == 0 {
		return fmt.Sprintf("no batch is known to train: %v", e.Err)
	}
	return fmt.Sprintf("%v; batch %d trains, larger batches may too", e.Err, e.Survived)
}

func (e *UnfinishedError) Unwrap() error { return e.Err }

// bench measures for a request.
type bench struct {
	analysis.Measured // what was found by now; its card is in the catalog, or as PyTorch describes it
	Measurement
	guide guide
	limit int64 // that probes run under, 0 if it is what the device has

	tooLong *TooLongError // why larger batches were not tried, nil if they were

	mu      sync.Mutex              // probes run at once: it guards Probes, EngineNotes, Assumed, and what follows
	broken  error                   // why no batch can train, nil if one might
	peaks   map[int64]measure.Peaks // of batches that fitted
	telling sync.Mutex              // one event at a time
}

// guide says where the edge is thought to be.
type guide interface {
	guess(ctx context.Context, fits, fails int64) int64
	// beyond is a batch above the edge that is thought to fit all the same, 0
	// if there is none.
	beyond(edge int64) int64
}

// Measure answers from real steps: the batch that is handed out has survived
// three of them in a fresh process. The next one has not, unless the answer is
// Bounded.
func Measure(ctx context.Context, r analysis.Request, m Measurement) (*analysis.Answer, error) {
	b, err := newBench(ctx, r, m)
	if err != nil {
		return nil, err
	}
	b.tell(MeasuringEvent{Kind: Ready, Device: &m.Session.Device, Versions: &m.Session.Versions, Seconds: m.Session.ImportSeconds})
	began := time.Now()
	largest, bounded, err := b.largest(ctx)
	searched := time.Since(began)
	if err != nil {
		return nil, b.unfinished(err)
	}
	if largest == 0 {
		return nil, b.nothingFits()
	}
	began = time.Now()
	speeds, err := b.speeds(ctx, largest)
	if err != nil {
		return nil, b.unfinished(err)
	}
	b.Bounded = bounded
	b.Seconds = analysis.Seconds{Import: m.Session.ImportSeconds, Search: milliseconds(searched), Throughput: milliseconds(time.Since(began))}
	return b.answer(largest, speeds), nil
}

func milliseconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

func newBench(ctx context.Context, r analysis.Request, m Measurement) (*bench, error) {
	d := m.Session.Device
	r.Card = cardOf(m.Session)
	r.HoursPerYear = cmp.Or(r.HoursPerYear, analysis.DefaultHours)
	m.MaxProbes = cmp.Or(m.MaxProbes, DefaultProbes)
	b := &bench{Measurement: m, peaks: make(map[int64]measure.Peaks), Measured: analysis.Measured{
		Request: r, Name: m.nameOf(r.Workload), OwnModel: m.User != nil,
		Engine: m.Session.Engine(), Device: d, Versions: m.Session.Versions,
	}}
	if err := b.setLimit(d); err != nil {
		return nil, err
	}
	if d.Type != "cuda" || !predictable(r, m.User) {
		b.guide = &lineGuide{bench: b}
		return b, nil
	}
	guide, err := newPredictedGuide(ctx, b)
	b.guide = guide
	return b, err
}

// setLimit finds out what the allocator may hold.
func (b *bench) setLimit(d measure.Device) error {
	switch {
	case b.Workload.Limit() > 0:
		b.limit = int64(b.Workload.Limit() - b.Reserve)
	case d.Type != "cuda":
		b.limit = free(d)/2 - int64(b.Reserve) // live tensors are not all that a process holds
	case b.Reserve > 0:
		b.limit = d.Free - int64(b.Reserve)
	default:
		// Libraries will take what the catalog says in addition to the bare context.
		b.Limit = min(d.Free, int64(b.Card.Usable()))
		return nil
	}
	if b.limit <= 0 {
		return &analysis.NothingLeftError{Has: bytesize.Bytes(b.limit) + b.Reserve, Reserve: b.Reserve}
	}
	if d.Type == "cpu" {
		b.limit = min(b.limit, free(d)) // beyond it the machine swaps, or kills
	}
	b.Limit = min(b.limit, free(d)) // a limit gives no more than there is
	return nil
}

// free is what a device has free, all of it if it does not say.
func free(d measure.Device) int64 {
	if d.Free == 0 {
		return d.Total
	}
	return d.Free
}

// maxOverhead is at least what a process takes in addition to its limit.
const maxOverhead = 2 << 30

// maxSpares is how many probes run at once.
const maxSpares = 2

// Spares is how many processes may open this machine's card ahead of a
// request's first probes.
func Spares(r analysis.Request) int {
	if limit := predict.Limit(r.Workload, r.Card) - r.Reserve; r.Workload.Limit() > 0 && 2*(limit+maxOverhead) <= r.Card.Usable() {
		return maxSpares
	}
	return 0
}

// together reports whether two probes may run at once: under a limit that
// leaves enough of the card for both, so that neither affects the other. An
// emulated card is each process's own.
func (b *bench) together() bool {
	d := b.Device
	return b.Session.Card != nil || d.Type == "cuda" && b.limit > 0 && 2*(b.limit+maxOverhead) <= d.Free
}

// largest finds the largest batch that survives.
func (b *bench) largest(ctx context.Context) (largest int64, bounded bool, err error) {
	try := func(batches []int64) ([]bool, error) { return b.tryAll(ctx, batches) }
	guess := func(fits, fails int64) int64 { return b.guide.guess(ctx, fits, fails) }
	o := search.Options{MultipleOf: b.MultipleOf, MaxProbes: b.MaxProbes, Most: maxMeasured}
	found, err := search.Edge(try, guess, b.together(), o)
	if errors.As(err, &b.tooLong) && found.Largest > 0 {
		return found.Largest, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	// Fitting is not monotonic: a larger batch may leave a cache that serves it
	// better. If a prediction knows one, it is worth two more probes.
	island := b.guide.beyond(found.Largest)
	if found.Largest == 0 || island == 0 || found.Bounded || b.MaxProbes-len(found.Order) < 2 {
		return found.Largest, found.Bounded, nil
	}
	fits, err := b.tryAll(ctx, []int64{island, island + max(b.MultipleOf, 1)})
	if err == nil && fits[0] && !fits[1] {
		return island, false, nil
	}
	return found.Largest, false, err
}

// tryAll confirms batches, each in a fresh process, at once if they may.
func (b *bench) tryAll(ctx context.Context, batches []int64) ([]bool, error) {
	fits, errs := make([]bool, len(batches)), make([]error, len(batches))
	if b.broken != nil {
		return nil, b.broken
	}
	if !b.together() {
		for i, batch := range batches {
			if fits[i], errs[i] = b.confirm(ctx, batch); errs[i] != nil {
				return fits[:i], errs[i]
			}
		}
		return fits, nil
	}
	var all sync.WaitGroup
	for i, batch := range batches {
		all.Go(func() { fits[i], errs[i] = b.confirm(ctx, batch) })
	}
	all.Wait()
	for _, err := range errs { // one is enough: what fails with every batch fails alike
		if err != nil {
			return nil, err
		}
	}
	return fits, nil
}

// confirm runs full steps of a batch in a fresh process.
func (b *bench) confirm(ctx context.Context, batch int64) (bool, error) {
	if seconds := b.expectedSeconds(batch); seconds > b.patience() {
		return false, &TooLongError{Batch: batch, Seconds: seconds, Timeout: b.Session.Timeout()}
	}
	probes, err := b.probe(ctx, analysis.Confirming, measure.Probe{Batches: []int64{batch}, Steps: confirmSteps})
	if err != nil {
		return false, err
	}
	return probes[0].Success, nil
}

// probe runs a process. A batch that is too large is an outcome; whatever else
// fails is an error.
func (b *bench) probe(ctx context.Context, purpose string, p measure.Probe) ([]analysis.Probe, error) {
	p.Workload, p.User, p.Limit = b.Workload, b.User, b.limit
	b.tell(MeasuringEvent{Kind: Trying, Batch: p.Batches[0], Purpose: purpose})
	r, err := b.Session.Probe(ctx, p, func(s measure.StepProgress) {
		b.tell(MeasuringEvent{Kind: StepDone, Batch: s.Batch, Step: s.Step, Allocated: s.Done.PeakAllocated, Reserved: s.Done.PeakReserved, Seconds: s.Done.Seconds, Purpose: purpose})
	})
	if err != nil {
		return nil, fmt.Errorf("batch %d: %w", p.Batches[0], err)
	}
	b.keepAssumed(r)
	var probes []analysis.Probe
	for _, o := range r.Outcomes {
		probe := analysis.Probe{Outcome: o, Success: o.Failure == nil, Purpose: purpose, Retries: r.Retries, HostPeak: r.HostPeak, WallSeconds: r.WallSeconds}
		if f := o.Failure; f != nil && f.TooBig() {
			short := *f
			short.Traceback = "" // every step looks the same where memory ends
			probe.Failure = &short
		}
		b.remember(probe)
		probes = append(probes, probe)
		if f := o.Failure; f != nil && !f.TooBig() {
			return nil, b.failed(o.Batch, f)
		}
	}
	return probes, nil
}

// failed is what went wrong with a batch. A model that cannot be built fails with
// every batch, and is not tried again.
func (b *bench) failed(batch int64, f *measure.Failure) error {
	err := fmt.Errorf("batch %d: %w", batch, f)
	if f.Phase == "build" && f.Class == measure.Other {
		b.mu.Lock()
		b.broken = f
		b.mu.Unlock()
	}
	return err
}

func (b *bench) remember(p analysis.Probe) {
	b.mu.Lock()
	b.Probes = append(b.Probes, p)
	peaks := p.Peaks()
	if p.Success {
		b.peaks[p.Batch] = peaks.Max(b.peaks[p.Batch])
	}
	b.mu.Unlock()
	e := MeasuringEvent{Kind: Tried, Batch: p.Batch, Purpose: p.Purpose, Success: &p.Success, Allocated: peaks.Allocated, Reserved: peaks.Reserved, Seconds: p.WallSeconds}
	if p.Failure != nil {
		e.Message = p.Failure.Summary()
	}
	b.tell(e)
}

func (b *bench) tell(e MeasuringEvent) {
	b.telling.Lock()
	defer b.telling.Unlock()
	if b.Progress != nil {
		b.Progress(e)
	}
}

func (b *bench) unfinished(err error) error {
	e := &UnfinishedError{Probes: b.Probes, Err: err}
	for _, p := range b.Probes {
		if p.Success && p.Purpose == analysis.Confirming {
			e.Survived = max(e.Survived, p.Batch)
		}
	}
	return e
}

// nothingFits says what happened at the smallest batch.
func (b *bench) nothingFits() error {
	smallest := max(b.MultipleOf, 1)
	for _, p := range b.Probes {
		if p.Batch == smallest && p.Failure != nil {
			e := &analysis.NothingFitsError{Batch: smallest, Device: b.Device.Name, Failure: p.Failure}
			b.explainEngine()
			e.Answer = b.Refusal(e)
			return e
		}
	}
	return b.unfinished(errors.New("no batch fits"))
}

// answer puts together what was measured.
func (b *bench) answer(largest int64, timed map[int64]analysis.Probe) *analysis.Answer {
	if len(timed) > 0 {
		b.Recommended, _ = b.Knee(timed)
	}
	b.Line = b.line(largest)
	if g, ok := b.guide.(*predictedGuide); ok {
		b.Predicted = g.forecast(largest)
	}
	b.explainEngine()
	b.explainBounds()
	return b.Answer(largest)
}

// nameOf is what is measured: a workload's model, or a user's function.
func (m *Measurement) nameOf(w *workload.Workload) string {
	if m.User != nil {
		return m.User.Path + ":" + m.User.Function
	}
	return w.Name()
}

// line goes through the largest batch and the one nearest to half of it.
func (b *bench) line(largest int64) *predict.MemoryLine {
	half := int64(0)
	for batch := range b.peaks {
		if batch < largest && abs(batch-largest/2) < abs(half-largest/2) {
			half = batch
		}
	}
	if half == 0 {
		return nil
	}
	slope := (b.peaks[largest].Allocated - b.peaks[half].Allocated) / (largest - half)
	return &predict.MemoryLine{Fixed: bytesize.Bytes(b.peaks[largest].Allocated - slope*largest), PerSample: bytesize.Bytes(slope), From: half}
}

func abs(n int64) int64 { return max(n, -n) }
