package analysis

import (
	"maps"
	"slices"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// Seconds are where the time of a measured answer went.
type Seconds struct {
	Import     float64 `json:"import"`     // of PyTorch and the model's code
	Search     float64 `json:"search"`     // until the largest batch was confirmed
	Throughput float64 `json:"throughput"` // timing
}

// Forecast is what was predicted of a measured answer.
type Forecast struct {
	OptimalBatch  int64   `json:"optimal_batch_size"`
	OptimalMemory int64   `json:"optimal_memory_bytes,omitempty"` // predicted, of the measured batch
	ErrorPercent  float64 `json:"memory_error_percent"`           // of that, against what was measured
}

// found is what the probes say: the largest batch, 0 for none, and what each
// took.
func (b *bench) found(largest int64) *Answer {
	d, v := b.Session.Device, b.Session.Versions
	a := &Answer{
		ID: b.Workload.ID, ModelName: b.nameOf(b.Workload), Device: d.Type, Engine: b.Session.Engine(),
		GPUName: d.Name, GPUTotal: d.Total, GPUTotalGB: gib(d.Total), Limit: b.expect, LimitGB: gib(b.expect), Margin: int64(predict.MarginOf(b.Workload, b.card)),
		OptimalBatch: largest, CurrentBatch: b.Workload.Batch, SpeedupBasis: b.Session.Engine(), HoursPerYear: b.HoursPerYear,
		Provenance: Provenance{
			PyTorch: v.Torch, Transformers: v.Transformers, Python: v.Python, CUDA: d.CUDA, CuDNN: d.CuDNN,
			Differences: measure.Differences(v.Torch, v.Transformers),
			Time:        time.Now().UTC().Truncate(time.Second), Workload: b.Workload,
		},
		Probes: b.probes,
	}
	a.setPrice(b.PricePerHour, b.card)
	b.explainEngine(a)
	results := b.results()
	a.Results = sortedResults(slices.Collect(maps.Values(results)))
	for i := range a.Results {
		r := &a.Results[i]
		r.Verdict = predict.VerdictOf(r.Success, bytesize.Bytes(r.Reserved), bytesize.Bytes(a.Limit), bytesize.Bytes(a.Margin))
	}
	a.compare(results[b.Workload.Batch], results[largest])
	return a
}

// answer puts together what was measured.
func (b *bench) answer(largest int64, speeds map[int64]Probe) *Answer {
	a := b.found(largest)
	a.Recommendation = b.worth
	if len(speeds) > 0 {
		a.Recommended, _ = b.knee(speeds)
	}
	a.MemoryLine = b.line(largest)
	if b.GlobalBatch > 0 {
		a.Accumulation = accumulate(b.GlobalBatch, largest, func(micro, _ int64) bool { return a.result(micro).Batch == 0 || a.result(micro).Success })
	}
	if b.User == nil {
		a.setRecipe(b.Workload)
	}
	a.setBill(b.Question, b.Workload)
	b.addPredictions(a)
	a.explain(max(b.MultipleOf, 1), nil)
	return a
}

// nameOf is what is measured: a workload's model, or a user's function.
func (m *Measurement) nameOf(w *workload.Workload) string {
	if m.User != nil {
		return m.User.Path + ":" + m.User.Function
	}
	return w.Name()
}

// results are what all probes of a batch found together. Whether it trains is
// for a process of its own to say: one that others came before may fail.
func (b *bench) results() map[int64]Result {
	results, confirmed := make(map[int64]Result), make(map[int64]bool)
	for _, p := range b.probes {
		r, before := b.result(p), results[p.Batch]
		if confirmed[p.Batch] && p.Purpose != confirming {
			r.Success = before.Success
		}
		confirmed[p.Batch] = confirmed[p.Batch] || p.Purpose == confirming
		results[p.Batch] = r.with(before)
	}
	return results
}

func (b *bench) result(p Probe) Result {
	peaks := p.Peaks()
	return Result{
		Batch: p.Batch, Success: p.Success, Memory: peaks.Allocated, MemoryGB: gib(peaks.Allocated),
		Reserved: peaks.Reserved, ReservedGB: gib(peaks.Reserved),
		Throughput: b.throughput(p.Batch, p.SecondsPerStep),
	}
}

// with adds what another probe of the same batch found.
func (r Result) with(other Result) Result {
	r.Memory = max(r.Memory, other.Memory)
	r.Reserved = max(r.Reserved, other.Reserved)
	r.MemoryGB, r.ReservedGB = gib(r.Memory), gib(r.Reserved)
	if other.SamplesPerSecond > r.SamplesPerSecond {
		r.Throughput = other.Throughput
	}
	return r
}

// line goes through the largest batch and the one nearest to half of it.
func (b *bench) line(largest int64) *predict.Line {
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
	return &predict.Line{Fixed: bytesize.Bytes(b.peaks[largest].Allocated - slope*largest), PerSample: bytesize.Bytes(slope), From: half}
}

func abs(n int64) int64 { return max(n, -n) }

// addPredictions says what was predicted of it, and what each single change
// would do, which only predictions know.
func (b *bench) addPredictions(a *Answer) {
	g, ok := b.guide.(*predictedGuide)
	if !ok {
		return
	}
	f := &Forecast{OptimalBatch: g.edge(b.expect).largest}
	measured := b.peaks[a.OptimalBatch].Allocated
	if f.OptimalMemory = g.predictedPeak(a.OptimalBatch, 0); f.OptimalMemory > 0 {
		f.ErrorPercent = round(100*float64(f.OptimalMemory-measured)/float64(measured), 3)
	}
	a.Predicted = f
	if b.Changes {
		a.Changes = plannerOf(b.Request, b.Workload.WithLimit(bytesize.Bytes(b.expect)), b.card).single()
	}
}
