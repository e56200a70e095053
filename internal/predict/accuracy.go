package predict

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"memorymark/internal/workload"
)

// Accuracy is how far predictions of an architecture were off on measured
// workloads (testdata/truth, docs/accuracy.md).
type Accuracy struct {
	Evidence
	Workloads int    `json:"workloads"` // whose peaks were measured
	Allocated Errors `json:"allocated"` // the step of each workload that is farthest off
	Reserved  Errors `json:"reserved"`
	// LargestBatch and StepTime are nil where none was measured.
	LargestBatch *Errors `json:"largest_batch,omitempty"`
	StepTime     *Errors `json:"step_time,omitempty"`
}

// Evidence is what predictions were held against.
type Evidence struct {
	GPU          string `json:"gpu"` // its name
	PyTorch      string `json:"pytorch"`
	Transformers string `json:"transformers,omitempty"` // absent for models that are not from there
}

// Errors sums up how far one quantity was off. Errors are shares of what was
// measured: 0.01 is one per cent. Median, Percentile95 and Worst leave out the
// sign; Lowest and Highest are the farthest below and above, 0 if none is.
type Errors struct {
	Cases          int   `json:"cases"`
	MostParameters int64 `json:"most_parameters"` // of the largest model among them

	Exact        int     `json:"exact"` // predicted to the byte, the sample
	Within       int     `json:"within_1_percent"`
	Median       float64 `json:"median"`
	Percentile95 float64 `json:"percentile_95"`
	Worst        float64 `json:"worst"`
	Lowest       float64 `json:"lowest"`
	Highest      float64 `json:"highest"`
}

// accuracy.json is written by make accuracy.
//
//go:embed accuracy.json
var accuracyFile []byte

var loadAccuracy = sync.OnceValue(func() map[string]Accuracy {
	var out map[string]Accuracy
	if err := json.Unmarshal(accuracyFile, &out); err != nil {
		panic(fmt.Sprintf("predict: accuracy.json: %v", err)) // it is part of the program
	}
	return out
})

// StatedAccuracy returns what is known of predictions of a kind of workload; ok
// is false if none was measured.
func StatedAccuracy(kind string) (a Accuracy, ok bool) {
	a, ok = loadAccuracy()[kind]
	return a, ok
}

// EvidenceOf names the kind of workload that a prediction is held against: the
// architecture and the layout of its images, the adapter and the weights under it,
// or the kind of parallelism.
func EvidenceOf(w *workload.Workload) string {
	switch {
	case w.Parallel != nil:
		return w.Parallel.Kind.Label()
	case w.ChannelsLast:
		return w.Config.Architecture + " in channels_last"
	case w.Adapter == nil:
		return w.Config.Architecture
	case w.Adapter.DoRA:
		return "DoRA"
	case w.Quantize != workload.NotQuantized:
		return "LoRA on " + string(w.Quantize) + " weights"
	default:
		return "LoRA"
	}
}
