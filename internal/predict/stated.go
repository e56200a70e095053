package predict

import (
	"fmt"
	"strconv"

	"memorymark/internal/figure"
	"memorymark/internal/gpu"
)

// Stated is what can be said of how far a prediction is off: what was measured
// and on what, and in what this model or card is another. Nothing is said of
// what was not measured.
type Stated struct {
	Kind       string // of workload, as EvidenceOf names it
	Parameters int64  // of the model asked about
	Card       *gpu.Card
	// Adapted says that ranks train adapters. None of those was measured.
	Adapted  bool
	Accuracy *Accuracy // nil if no such model was measured
}

// Stated is what can be said of a simulation.
func (s *Simulation) Stated() Stated {
	w := s.Process.w
	out := Stated{Kind: EvidenceOf(w), Parameters: s.Parameters(), Card: s.Card, Adapted: w.Parallel != nil && w.Adapter != nil}
	if a, ok := StatedAccuracy(out.Kind); ok {
		out.Accuracy = &a
	}
	return out
}

// OfPeaks says how far peaks were off.
func (s Stated) OfPeaks() []string {
	a := s.Accuracy
	if a == nil {
		return []string{fmt.Sprintf("Accuracy for %s is unknown: none has been measured.", s.Kind)}
	}
	return append([]string{
		fmt.Sprintf("%s: allocated memory is %s; reserved memory is %s.", s.measured(a.Workloads, "workloads", &a.Allocated), a.Allocated.outcome(), a.Reserved.outcome()),
	}, s.beyond(&a.Allocated)...)
}

// OfBatches says how far largest batches and step times were off.
func (s Stated) OfBatches() []string {
	a, out := s.Accuracy, s.OfPeaks()
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
	return fmt.Sprintf("Checked against %d %s of %s, up to %s, measured on %s with %s", n, what, s.Kind,
		parametersText(e.MostParameters), gpu.WithArticle(s.Accuracy.GPU), s.Accuracy.versions())
}

// larger is how much larger than what was measured a model may be and still
// count as measured.
const larger = 1.1

// beyond says in what the model or the card is not one that was measured.
func (s Stated) beyond(e *Errors) []string {
	what := ""
	if s.Adapted {
		what += " with adapters"
	}
	if float64(s.Parameters) > larger*float64(e.MostParameters) {
		if what != "" {
			what += " and"
		}
		what += " with " + parametersText(s.Parameters)
	}
	if s.Card.Name != s.Accuracy.GPU {
		what += " on " + gpu.WithArticle(s.Card.Name)
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
