package analysis

import (
	"maps"
	"slices"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/emulate"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
)

// Probe is one batch in one process.
type Probe struct {
	measure.Outcome
	Success     bool    `json:"success"`
	Purpose     string  `json:"purpose"` // Confirming, Guiding, Looking or Timing
	Retries     int64   `json:"retries"`
	HostPeak    int64   `json:"host_peak_bytes,omitempty"`
	WallSeconds float64 `json:"wall_seconds"` // of the whole process
}

// What a probe was for. Only one that confirms had a fresh process to itself.
const (
	Confirming = "confirm"
	Guiding    = "guide"
	Looking    = "current" // at the present batch
	Timing     = "time"
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

// Measured is what real steps found for a request, on a GPU or on an emulated card.
type Measured struct {
	Request         // with the card that the steps ran on
	Name     string // of what was trained
	OwnModel bool   // it is a program of the user's, of which there is no recipe
	Engine   evidence.Engine
	Device   measure.Device
	Versions measure.Versions
	Limit    int64 // what the allocator can reserve
	Probes   []Probe
	Bounded  bool // larger batches were not tried

	Recommendation
	Line      *predict.MemoryLine
	Predicted *Forecast // nil where nothing is predicted
	Assumed   []emulate.Assumption
	Seconds   Seconds

	// Sentences about the engine, its accuracy, and what ended the search for larger batches.
	EngineNotes, AccuracyNotes, LimitNotes []string
}

// Answer is the answer in which a batch is the largest that trains.
func (m *Measured) Answer(largest int64) *Answer {
	a := m.begin(largest)
	a.Bounded, a.Recommendation, a.MemoryLine, a.Predicted, a.Seconds = m.Bounded, m.Recommendation, m.Line, m.Predicted, &m.Seconds
	if m.GlobalBatch > 0 {
		a.Accumulation = accumulate(m.GlobalBatch, largest, func(micro, _ int64) bool { return a.result(micro).Batch == 0 || a.result(micro).Success })
	}
	if !m.OwnModel {
		a.setRecipe(m.Workload)
	}
	a.setBill(m.Question, m.Workload)
	if m.Changes && m.Predicted != nil { // only predictions know what changes would do
		p := plannerOf(m.Request, m.Workload.WithLimit(bytesize.Bytes(m.Limit)), m.Card)
		p.keepBack()
		a.Changes = p.single()
	}
	a.explain(max(m.MultipleOf, 1), nil)
	a.noteAll("limit", m.LimitNotes)
	return a
}

// Refusal is the answer in which no batch trains.
func (m *Measured) Refusal(why error) *Answer {
	a := m.begin(0)
	a.note("limit", "%s", why)
	return a
}

// begin is what the probes say: the largest batch, 0 for none, and what each
// took.
func (m *Measured) begin(largest int64) *Answer {
	d, v := m.Device, m.Versions
	a := &Answer{
		ID: m.Workload.ID, ModelName: m.Name, Device: d.Type, Engine: m.Engine,
		GPUName: d.Name, GPUTotal: d.Total, GPUTotalGB: gib(d.Total), Limit: m.Limit, LimitGB: gib(m.Limit), Margin: int64(predict.MarginOf(m.Workload, m.Card)),
		OptimalBatch: largest, CurrentBatch: m.Workload.Batch, SpeedupBasis: m.Engine, HoursPerYear: m.HoursPerYear,
		Provenance: Provenance{
			PyTorch: v.Torch, Transformers: v.Transformers, Python: v.Python, CUDA: d.CUDA, CuDNN: d.CuDNN,
			Differences: measure.Differences(v.Torch, v.Transformers),
			Time:        time.Now().UTC().Truncate(time.Second), Workload: m.Workload,
		},
		Probes: m.Probes, Assumed: m.Assumed,
	}
	a.setPrice(m.PricePerHour, m.Card)
	a.noteAll("engine", m.EngineNotes)
	a.noteAll(AboutAccuracy, m.AccuracyNotes)
	results := m.results()
	a.Results = sortedResults(slices.Collect(maps.Values(results)))
	for i := range a.Results {
		r := &a.Results[i]
		if r.Success {
			r.Left = new(a.Limit - r.Reserved)
		}
		r.Verdict = predict.VerdictOf(r.Success, bytesize.Bytes(r.Reserved), bytesize.Bytes(a.Limit), bytesize.Bytes(a.Margin))
	}
	a.compare(results[m.Workload.Batch], results[largest])
	return a
}

// results are what all probes of a batch found together. Whether it trains is
// for a process of its own to say: one that others came before may fail.
func (m *Measured) results() map[int64]Result {
	results, confirmed := make(map[int64]Result), make(map[int64]bool)
	for _, p := range m.Probes {
		r, before := m.result(p), results[p.Batch]
		if confirmed[p.Batch] && p.Purpose != Confirming {
			r.Success = before.Success
		}
		confirmed[p.Batch] = confirmed[p.Batch] || p.Purpose == Confirming
		results[p.Batch] = r.with(before)
	}
	return results
}

func (m *Measured) result(p Probe) Result {
	peaks := p.Peaks()
	return Result{
		Batch: p.Batch, Success: p.Success, Memory: peaks.Allocated, MemoryGB: gib(peaks.Allocated),
		Reserved: peaks.Reserved, ReservedGB: gib(peaks.Reserved),
		Throughput: m.Throughput(p.Batch, p.SecondsPerStep),
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

// Knee is the smallest batch whose throughput is close to the best of those that were
// timed, and the largest below it that was timed.
func (m *Measured) Knee(timed map[int64]Probe) (knee, below int64) {
	var batches []int64
	best, results := 0.0, m.results()
	for batch, p := range timed {
		if !results[batch].Success {
			continue // it ran after others in one process, and failed alone
		}
		batches = append(batches, batch)
		best = max(best, m.samplesPerSecond(batch, p.SecondsPerStep))
	}
	slices.Sort(batches)
	for _, batch := range batches {
		if batch%max(m.MultipleOf, 1) == 0 && m.samplesPerSecond(batch, timed[batch].SecondsPerStep) >= worthwhile*best {
			return batch, below
		}
		below = batch
	}
	return below, below
}

// PredictedKnee is about where throughput comes close to that of the fastest batch.
func PredictedKnee(r Request, largest int64) (int64, error) {
	return plannerOf(r, r.Workload, r.Card).knee(largest)
}

// PredictedRecommendation is the batch worth using, of those up to the largest that
// fits a limit.
func PredictedRecommendation(r Request, limit bytesize.Bytes, largest int64) (out Recommendation, err error) {
	out.Recommended, out.Tight, err = plannerOf(r, r.Workload.WithLimit(limit), r.Card).recommend(largest)
	return out, err
}
