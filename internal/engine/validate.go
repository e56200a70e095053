package engine

import (
	"context"
	"fmt"
	"math"

	"memorymark/internal/evidence"
	"memorymark/internal/figure"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

// CheckOutcome is the outcome of a check.
type CheckOutcome string

// Verdicts.
const (
	Pass CheckOutcome = "PASS"
	Warn CheckOutcome = "WARN"
	Fail CheckOutcome = "FAIL"
)

// Check is what every check says.
type Check struct {
	Model   string           `json:"model_name"`
	Batch   int64            `json:"batch_size"`
	Device  measure.Device   `json:"device"`
	Engine  evidence.Engine  `json:"engine"`
	With    measure.Versions `json:"versions"`
	Verdict CheckOutcome     `json:"verdict"`
	Why     string           `json:"why"`
}

// validator runs checks.
type validator struct {
	Measurement
	w *workload.Workload
}

func (v *validator) check() Check {
	return Check{Model: v.nameOf(v.w), Batch: v.w.Batch, Device: v.Session.Device, Engine: v.Session.Engine(), With: v.Session.Versions}
}

// probe runs the workload once. Every failure is an error: a check compares
// what runs.
func (v *validator) probe(ctx context.Context, w *workload.Workload, p measure.Probe) (*measure.ProbeResult, error) {
	p.Workload, p.User, p.Batches = w, v.User, []int64{w.Batch}
	p.Limit = int64(w.Limit())
	r, err := v.Session.Probe(ctx, p, func(s measure.StepProgress) {
		if v.Progress != nil {
			v.Progress(MeasuringEvent{Kind: StepDone, Batch: s.Batch, Step: s.Step, Allocated: s.Done.PeakAllocated, Reserved: s.Done.PeakReserved, Seconds: s.Done.Seconds})
		}
	})
	if err != nil {
		return nil, err
	}
	if f := r.Outcomes[0].Failure; f != nil {
		return nil, fmt.Errorf("batch %d: %w", w.Batch, f)
	}
	return r, nil
}

// BackwardCheck compares a forward pass that keeps nothing with one that is
// followed by backward.
type BackwardCheck struct {
	Check
	Forward   int64   `json:"forward_bytes"`  // peak under no_grad
	Backward  int64   `json:"backward_bytes"` // peak of forward and backward
	Steps     int     `json:"steps"`          // of each that really ran
	Ratio     float64 `json:"ratio"`
	Predicted float64 `json:"predicted_ratio,omitempty"` // absent for a user's own model
}

// Below leastRatio backward did not run. Within closeRatio of the prediction
// it ran as it should.
const (
	leastRatio = 1.2
	closeRatio = 0.10
)

// ValidateBackward checks that training really goes backward.
func ValidateBackward(ctx context.Context, w *workload.Workload, m Measurement) (*BackwardCheck, error) {
	v := &validator{m, w}
	c := &BackwardCheck{Check: v.check()}
	for _, part := range []struct {
		phase workload.Phase
		peak  *int64
	}{{workload.Infer, &c.Forward}, {workload.Backward, &c.Backward}} {
		r, err := v.probe(ctx, inPhase(w, part.phase), measure.Probe{Steps: confirmSteps})
		if err != nil {
			return nil, err
		}
		o := &r.Outcomes[0]
		*part.peak, c.Steps = o.Peaks().Allocated, len(o.Steps)
	}
	c.Ratio = figure.Round(float64(c.Backward)/float64(c.Forward), 3)
	if m.User == nil && w.Unmodelled == "" {
		c.Predicted = predictedRatio(w, cardOf(m.Session))
	}
	c.judge()
	return c, nil
}

func inPhase(w *workload.Workload, phase workload.Phase) *workload.Workload {
	out := *w
	out.Phase = phase
	if phase == workload.Backward || phase == workload.Infer {
		out.Optimizer = workload.NoOptimizer
	}
	return &out
}

// predictedRatio is what is predicted of the same, 0 if nothing is.
func predictedRatio(w *workload.Workload, card *gpu.Card) float64 {
	var peaks [2]float64
	for i, phase := range []workload.Phase{workload.Infer, workload.Backward} {
		s, err := predict.Run(inPhase(w, phase).WithLimit(unlimited), card, predict.Options{})
		if err != nil {
			return 0
		}
		peaks[i] = float64(s.Peak().PeakAllocated)
	}
	return figure.Round(peaks[1]/peaks[0], 3)
}

func (c *BackwardCheck) judge() {
	off := math.Abs(c.Ratio/c.Predicted - 1)
	switch {
	case c.Ratio < leastRatio:
		c.Verdict, c.Why = Fail, fmt.Sprintf("backward takes hardly more memory than forward (less than %.1f ×), so it did not run", leastRatio)
	case c.Predicted == 0:
		c.Verdict, c.Why = Warn, "backward ran, but there is no prediction to compare it with"
	case off <= closeRatio:
		c.Verdict, c.Why = Pass, fmt.Sprintf("within %.0f %% of the predicted %.3g ×", 100*closeRatio, c.Predicted)
	default:
		c.Verdict, c.Why = Warn, fmt.Sprintf("%.0f %% off the predicted %.3g ×", 100*off, c.Predicted)
	}
}

// CompileCheck compares eager steps with those of torch.compile.
type CompileCheck struct {
	Check
	Eager    Speed `json:"eager"`
	Compiled Speed `json:"compiled"`
	Graphs   int64 `json:"compiled_graphs"` // 0 if nothing was compiled
	// PaysAfter is the number of steps after which compiling has paid, absent
	// if it never does.
	PaysAfter int64 `json:"pays_after_steps,omitempty"`
}

// Speed is how long steps take and what they hold.
type Speed struct {
	FirstSeconds  float64 `json:"first_step_seconds"`
	SteadySeconds float64 `json:"steady_step_seconds"`
	Peak          int64   `json:"peak_bytes,omitempty"` // absent where it is not known next to times
	Reserved      int64   `json:"peak_reserved_bytes,omitempty"`
}

// ValidateCompile measures what compiling brings.
func ValidateCompile(ctx context.Context, w *workload.Workload, m Measurement) (*CompileCheck, error) {
	v := &validator{m, w}
	c := &CompileCheck{Check: v.check()}
	for _, side := range []struct {
		compile bool
		speed   *Speed
	}{{false, &c.Eager}, {true, &c.Compiled}} {
		r, err := v.probe(ctx, w, measure.Probe{Steps: confirmSteps, Timed: timedSteps, Compile: side.compile, TimesOnly: true})
		if err != nil {
			return nil, err
		}
		c.Graphs = r.CompiledGraphs
		o := &r.Outcomes[0]
		peaks := o.Peaks()
		*side.speed = Speed{FirstSeconds: o.Steps[0].Seconds, SteadySeconds: o.SecondsPerStep, Peak: peaks.Allocated, Reserved: peaks.Reserved}
	}
	c.judge()
	return c, nil
}

func (c *CompileCheck) judge() {
	saved := c.Eager.SteadySeconds - c.Compiled.SteadySeconds
	switch spent := c.Compiled.FirstSeconds - c.Eager.FirstSeconds; {
	case c.Graphs == 0:
		c.Verdict, c.Why = Fail, "torch.compile compiled nothing: all steps ran eagerly"
	case saved <= 0:
		c.Verdict, c.Why = Warn, "compiled steps are no faster"
	case spent <= 0:
		c.Verdict, c.Why, c.PaysAfter = Pass, "compiling takes no time", 1
	default:
		c.PaysAfter = int64(math.Ceil(spent / saved))
		c.Verdict, c.Why = Pass, fmt.Sprintf("compiling takes %.1f s and saves %.1f ms per step: it pays off after %d steps", spent, 1e3*saved, c.PaysAfter)
	}
}

// PredictionCheck compares the predicted process with the recorded one.
type PredictionCheck struct {
	Check
	Predicted, Measured *trace.Trace      `json:"-"`
	Comparison          *trace.Comparison `json:"-"`
}

// ValidatePrediction records a whole process, the model built and three steps,
// and compares every allocation and free with the predicted ones. The
// recording is written to a path, unless that is empty.
func ValidatePrediction(ctx context.Context, w *workload.Workload, m Measurement, path string) (*PredictionCheck, error) {
	if m.User != nil {
		return nil, fmt.Errorf("your own model is not predicted")
	}
	if w.Unmodelled != "" {
		return nil, fmt.Errorf("%s, so there is no prediction", w.Unmodelled)
	}
	v := &validator{m, w}
	c := &PredictionCheck{Check: v.check()}
	record, remove, err := processRecord(path)
	if err != nil {
		return nil, err
	}
	defer remove()
	if _, err := v.probe(ctx, w, measure.Probe{Steps: confirmSteps, Record: record}); err != nil {
		return nil, err
	}
	if c.Measured, err = readRecording(record.Path); err != nil {
		return nil, err
	}
	s, err := predict.Run(w, cardOf(m.Session), predict.Options{})
	if err != nil {
		return nil, err
	}
	if c.Predicted, err = s.Trace(); err != nil {
		return nil, err
	}
	c.Comparison = trace.Compare(c.Predicted, c.Measured)
	c.Verdict, c.Why = Pass, "every allocation and free is as predicted"
	if c.Comparison.Differ() {
		c.Verdict, c.Why = Fail, "the prediction differs from the recording"
	}
	return c, nil
}
