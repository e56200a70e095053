package predict

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"memorymark/internal/figure"
	"memorymark/internal/gpu"
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

// Evidence is what predictions were compared with.
type Evidence struct {
	GPU          string `json:"gpu"` // its name
	PyTorch      string `json:"pytorch"`
	Transformers string `json:"transformers,omitempty"` // absent for models that are not from there
}

// Errors sums up how far one quantity was off. Errors are shares of what was
// measured: 0.01 is one per cent. Median, Percentile95 and Worst leave out the
// sign; Lowest and Highest are the farthest below and above, 0 if none is.
type Errors struct {
	Cases         int   `json:"cases"`
	MaxParameters int64 `json:"most_parameters"` // of the largest model among them

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

// AccuracyOf is how far predictions of such workloads were off, nil if none was
// measured.
func AccuracyOf(w *workload.Workload) *Accuracy {
	if a, ok := loadAccuracy()[kindOf(w)]; ok {
		return &a
	}
	return nil
}

// kindOf names the kind of workload that a prediction is compared with: the
// architecture and the layout of its images, the adapter and the weights under it,
// or the kind of parallelism.
func kindOf(w *workload.Workload) string {
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

// Stated is what can be said of how far a prediction is off: what was measured
// and on what, and in what this model or card is another. Nothing is said of
// what was not measured.
type Stated struct {
	kind       string // of workload
	parameters int64  // of the model asked about
	card       *gpu.Card
	adapted    bool      // ranks train adapters, and none of those was measured
	accuracy   *Accuracy // nil if no such model was measured
}

// StatedOf is what can be said of a prediction of a workload.
func StatedOf(w *workload.Workload, parameters int64, card *gpu.Card) Stated {
	return Stated{kindOf(w), parameters, card, w.Parallel != nil && w.Adapter != nil, AccuracyOf(w)}
}

// OfPeaks says how far peaks were off.
func (s Stated) OfPeaks() []string {
	a := s.accuracy
	if a == nil {
		return []string{fmt.Sprintf("Accuracy for %s is unknown: none has been measured.", s.kind)}
	}
	return append([]string{
		fmt.Sprintf("%s: allocated memory is %s; reserved memory is %s.", s.measured(a.Workloads, "workloads", &a.Allocated), a.Allocated.outcome(), a.Reserved.outcome()),
	}, s.beyond(&a.Allocated)...)
}

// OfBatches says how far largest batches and step times were off.
func (s Stated) OfBatches() []string {
	a, out := s.accuracy, s.OfPeaks()
	if a == nil {
		return out
	}
	if a.LargestBatch != nil {
		out = append([]string{fmt.Sprintf("%s: %s.", s.measured(a.LargestBatch.Cases, "largest batches", a.LargestBatch), a.LargestBatch.outcome())},
			s.beyond(a.LargestBatch)...)
	} else {
		out = append(out, "Their largest batch has not been measured.")
	}
	if a.StepTime == nil {
		return append(out, "No steps of such models have been timed, so speeds are estimates.")
	}
	return append(out, fmt.Sprintf("Of %d timed steps of such models, half are within %s of the time model.", a.StepTime.Cases, share(a.StepTime.Median)))
}

// measured names the evidence.
func (s Stated) measured(n int, what string, e *Errors) string {
	return fmt.Sprintf("Checked against %d %s of %s, up to %s, measured on %s with %s", n, what, s.kind,
		parametersText(e.MaxParameters), gpu.WithArticle(s.accuracy.GPU), s.accuracy.versions())
}

// larger is how much larger than what was measured a model may be and still
// count as measured.
const larger = 1.1

// beyond says in what the model or the card is not one that was measured.
func (s Stated) beyond(e *Errors) []string {
	what := ""
	if s.adapted {
		what += " with adapters"
	}
	if float64(s.parameters) > larger*float64(e.MaxParameters) {
		if what != "" {
			what += " and"
		}
		what += " with " + parametersText(s.parameters)
	}
	if s.card.Name != s.accuracy.GPU {
		what += " on " + gpu.WithArticle(s.card.Name)
	}
	if what == "" {
		return nil
	}
	return []string{"Accuracy" + what + " has not been measured."}
}

func (e Evidence) versions() string {
	if e.Transformers == "" {
		return "PyTorch " + e.PyTorch
	}
	return "PyTorch " + e.PyTorch + " and transformers " + e.Transformers
}

// outcome is how far off the cases were, in a few words.
func (e *Errors) outcome() string {
	if e.Exact == e.Cases {
		return "exact for all"
	}
	return fmt.Sprintf("exact for %d of %d, at worst %s off", e.Exact, e.Cases, share(e.Worst))
}

// share writes a share with the digits that matter.
func share(v float64) string { return strconv.FormatFloat(100*v, 'g', 2, 64) + " %" }

// parametersText is a number of parameters as people say it.
func parametersText(n int64) string {
	switch {
	case n >= 1e9:
		return strconv.FormatFloat(float64(n)/1e9, 'f', 1, 64) + " billion parameters"
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 0, 64) + " million parameters"
	default:
		return figure.Count(int(n)) + " parameters"
	}
}
