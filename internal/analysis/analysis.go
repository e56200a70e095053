// Package analysis composes the answer that people ask for: the largest batch
// that trains on a card, the one worth using, and what the present one wastes
// in memory, time and money. It predicts, or takes what package engine measured.
package analysis

import (
	"fmt"
	"slices"
	"time"

	"memorymark/internal/bytesize"
	"memorymark/internal/emulate"
	"memorymark/internal/evidence"
	"memorymark/internal/figure"
	"memorymark/internal/predict"
	"memorymark/internal/recipe"
	"memorymark/internal/workload"
)

// DefaultHours is a million runs of 0.72 s in a year.
const DefaultHours = 200

// Answer is the answer. Amounts in GB are GiB, rounded to two places; those in
// bytes are exact.
type Answer struct {
	ID           string          `json:"id,omitempty"`
	ModelName    string          `json:"model_name"`
	Device       string          `json:"device"` // cuda, mps or cpu
	Engine       evidence.Engine `json:"engine"` // Predicted, Emulated or Measured
	GPUName      string          `json:"gpu_name"`
	GPUTotalGB   float64         `json:"gpu_total_gb"`
	GPUTotal     int64           `json:"gpu_total_bytes"`
	LimitGB      float64         `json:"limit_gb"` // the most that PyTorch may reserve
	Limit        int64           `json:"limit_bytes"`
	Margin       int64           `json:"margin_bytes" doc:"what must be left of the limit for a verdict of fits: 2 % of the card, and at least 300 MiB"`
	OptimalBatch int64           `json:"optimal_batch_size"`
	Bounded      bool            `json:"bounded,omitempty"` // larger batches were not looked at
	Memory                       // at the optimal batch
	Recommendation
	CurrentBatch int64 `json:"current_batch_size"`
	CurrentFits  bool  `json:"current_fits"`
	Current

	BatchRatio   float64         `json:"batch_ratio"`
	Speedup      float64         `json:"speedup,omitempty"` // absent where the current batch does not run
	SpeedupBasis evidence.Engine `json:"speedup_basis"`
	Savings      *float64        `json:"cost_savings_annual,omitempty"` // in dollars; absent without a price
	HoursPerYear float64         `json:"hours_per_year"`
	CardPrice
	// Bill is absent where nothing was timed.
	Bill *Bill `json:"bill,omitempty"`

	Growth
	Accumulation *Accumulation `json:"accumulation,omitempty"`
	// Recipe is the program that the answer is about, absent where there is none.
	Recipe  *recipe.Recipe `json:"recipe,omitempty"`
	Results []Result       `json:"results"`
	Changes []Effect       `json:"changes,omitempty"`
	// What only a measured answer has: what was predicted of it, everything that
	// was run, and where the time went.
	Predicted *Forecast `json:"predicted,omitempty"`
	Probes    []Probe   `json:"probes,omitempty"`
	Seconds   *Seconds  `json:"seconds,omitempty"`
	// Assumed are the places where a value that a kernel would have computed was
	// made up, on an emulated card.
	Assumed []emulate.Assumption `json:"assumed,omitempty"`
	// Snapshot is the id of a recording of the optimal batch, where one was
	// uploaded.
	Snapshot string `json:"snapshot_id,omitempty"`
	// ToFit are the smallest sets of changes with which the present batch trains
	// where it does not, the preferred first.
	ToFit []ChangeSet `json:"to_fit,omitempty"`
	// FullFineTuning is the same without the adapter.
	FullFineTuning *FullFineTuning `json:"full_fine_tuning,omitempty"`

	Notes []Note `json:"notes,omitempty"`
	// Accuracy is how far off such predictions were, absent if that is not known.
	Accuracy   *predict.Accuracy `json:"accuracy,omitempty"`
	Provenance Provenance        `json:"provenance"`
}

// Memory is what the optimal batch takes and leaves.
type Memory struct {
	OptimalMemoryGB float64 `json:"optimal_memory_gb"`
	OptimalMemory   int64   `json:"optimal_memory_bytes"`
	WasteGB         float64 `json:"waste_gb"`
	Waste           int64   `json:"waste_bytes"`
	WastePercent    float64 `json:"waste_percent"`
}

// Current is what the present batch takes and leaves.
type Current struct {
	CurrentMemoryGB     float64 `json:"current_memory_gb"`
	CurrentMemory       int64   `json:"current_memory_bytes" doc:"0 if a real run of it failed, which does not say"`
	CurrentWasteGB      float64 `json:"current_waste_gb"`
	CurrentWaste        int64   `json:"current_waste_bytes"`
	CurrentWastePercent float64 `json:"current_waste_percent"`
}

// Result is a batch that was looked at. A run that fails does not say what it needs:
// that is absent then.
type Result struct {
	Batch      int64   `json:"batch_size"`
	MemoryGB   float64 `json:"memory_gb,omitempty"` // peak of allocated memory
	Memory     int64   `json:"memory_bytes,omitempty" doc:"peak of allocated memory; absent if a real run failed before it was known"`
	ReservedGB float64 `json:"reserved_gb,omitempty"` // peak of what PyTorch holds
	Reserved   int64   `json:"reserved_bytes,omitempty" doc:"peak of what PyTorch holds; absent as memory_bytes is"`
	Throughput
	Success bool            `json:"success"`
	Verdict predict.Verdict `json:"verdict" enum:"fits,tight,does not fit" doc:"tight: it trains, and less than the margin is left of the limit"`
	Left    *int64          `json:"left_bytes,omitempty" doc:"of the limit; negative: what is missing; absent if a real run failed, which does not say"`
}

// Throughput is how fast steps are, absent where nothing was timed or nothing trains.
type Throughput struct {
	SamplesPerSecond float64 `json:"samples_per_second,omitempty"`
	TokensPerSecond  float64 `json:"tokens_per_second,omitempty"` // of text
}

// Provenance says what the answer rests on.
type Provenance struct {
	PyTorch      string             `json:"pytorch"`
	Transformers string             `json:"transformers,omitempty"`
	Python       string             `json:"python,omitempty"`
	CUDA         string             `json:"cuda,omitempty"`
	CuDNN        int64              `json:"cudnn,omitempty"`
	Differences  []string           `json:"differences,omitempty"` // from the predicted versions
	Time         time.Time          `json:"time"`                  // of the answer
	Workload     *workload.Workload `json:"workload"`
}

// NothingLeftError says that what is to be kept free leaves nothing to train in.
type NothingLeftError struct {
	Has, Reserve bytesize.Bytes
}

func (e *NothingLeftError) Error() string {
	return fmt.Sprintf("no memory is left for training: %[2]v of %[1]v must stay free", e.Has, e.Reserve)
}

// Predict answers from predictions alone.
func Predict(r Request) (*Answer, error) {
	a, err := predictAnswer(r)
	if spent := r.Work.Err(); spent != nil {
		return nil, spent // whatever was found by then
	}
	return a, err
}

func predictAnswer(r Request) (*Answer, error) {
	p, err := newPlanner(r)
	if err != nil {
		return nil, err
	}
	largest, err := p.largest(p.run)
	if err != nil {
		return nil, err
	}
	if largest == 0 {
		return nil, p.refuse()
	}
	a := p.answer(largest)
	for _, batch := range []int64{p.w.Batch, largest} {
		if err := p.addResult(a, batch); err != nil {
			return nil, err
		}
	}
	a.compare(p.looked[p.w.Batch], p.looked[largest])
	return a, p.complete(a, largest)
}

// addResult adds a batch to what was looked at.
func (p *planner) addResult(a *Answer, batch int64) error {
	r, err := p.look(batch)
	if err == nil {
		a.Results = sortedResults(append(a.Results, r))
	}
	return err
}

// sortedResults orders results by batch, each once.
func sortedResults(results []Result) []Result {
	slices.SortFunc(results, func(x, y Result) int { return int(x.Batch - y.Batch) })
	return slices.CompactFunc(results, func(x, y Result) bool { return x.Batch == y.Batch })
}

// Between are powers of two strictly between two batches, three at the most.
func Between(low, high int64) []int64 {
	var out []int64
	for b := int64(1); b < high; b *= 2 {
		if b > low {
			out = append(out, b)
		}
	}
	for len(out) > 3 {
		for i := 0; i+1 < len(out); i++ {
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

// compare fills in what follows from the current and the optimal batch.
func (a *Answer) compare(current, optimal Result) {
	a.OptimalMemory, a.OptimalMemoryGB = optimal.Memory, optimal.MemoryGB
	a.Waste = a.GPUTotal - optimal.Memory
	a.WasteGB, a.WastePercent = gib(a.Waste), percent(a.Waste, a.GPUTotal)
	a.CurrentMemory, a.CurrentMemoryGB, a.CurrentFits = current.Memory, current.MemoryGB, current.Success
	if a.CurrentWaste = a.GPUTotal - current.Memory; !current.Success {
		a.CurrentWaste = 0 // nothing runs, and nothing is left over
	}
	a.CurrentWasteGB, a.CurrentWastePercent = gib(a.CurrentWaste), percent(a.CurrentWaste, a.GPUTotal)
	a.BatchRatio = figure.Round(float64(a.OptimalBatch)/float64(a.CurrentBatch), 2)
	if !current.Success || current.SamplesPerSecond == 0 || optimal.SamplesPerSecond == 0 {
		return
	}
	a.Speedup = figure.Round(optimal.SamplesPerSecond/current.SamplesPerSecond, 2)
	if a.PricePerHour != nil {
		// A batch that is not faster saves nothing; people keep theirs.
		share := max(1-current.SamplesPerSecond/optimal.SamplesPerSecond, 0)
		savings := figure.Round(a.HoursPerYear**a.PricePerHour*share, 2)
		a.Savings = &savings
	}
}
