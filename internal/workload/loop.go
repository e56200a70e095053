package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"memorymark/internal/invalid"
)

// TrainingLoop is the loop that training runs in: a library's, or one described by
// what it does with memory.
type TrainingLoop struct {
	Name     LoopName // "" for a described loop
	Outputs  Outputs
	ZeroGrad ZeroGrad
	Build    Build
	Scaler   Scaler
}

type (
	// LoopName is the name of a loop.
	LoopName string
	// Outputs is what happens to a model's output before backward.
	Outputs string
	// ZeroGrad is when gradients are dropped.
	ZeroGrad string
	// Build is where the model is made.
	Build string
	// Scaler is what scales the loss. Libraries' loops have their own under fp16
	// autocast.
	Scaler string
)

// Loops, and the choices of a described one.
const (
	PlainLoop      LoopName = "plain"
	TrainerLoop    LoopName = "trainer"
	LightningLoop  LoopName = "lightning"
	AccelerateLoop LoopName = "accelerate"

	OutputsDropped Outputs = "dropped"
	OutputsKept    Outputs = "kept"

	ZeroAfterStep      ZeroGrad = "after-step"
	ZeroBeforeForward  ZeroGrad = "before-forward"
	ZeroBeforeBackward ZeroGrad = "before-backward"

	BuildOnDevice Build = "device"
	BuildOnCPU    Build = "cpu"

	NoScaler   Scaler = "none"
	GradScaler Scaler = "grad" // torch.amp.GradScaler
)

// plainLoop has the defaults of a described loop.
var plainLoop = TrainingLoop{PlainLoop, OutputsDropped, ZeroAfterStep, BuildOnDevice, NoScaler}

// loops are the named loops.
var loops = []TrainingLoop{
	plainLoop,
	{TrainerLoop, OutputsDropped, ZeroAfterStep, BuildOnCPU, NoScaler},
	{LightningLoop, OutputsDropped, ZeroBeforeBackward, BuildOnCPU, NoScaler},
	{AccelerateLoop, OutputsKept, ZeroBeforeForward, BuildOnCPU, NoScaler},
}

// loopParts are the keys of a described loop and their values.
var loopParts = []Part{
	{"outputs", []string{string(OutputsDropped), string(OutputsKept)}},
	{"zero_grad", []string{string(ZeroAfterStep), string(ZeroBeforeForward), string(ZeroBeforeBackward)}},
	{"build", []string{string(BuildOnDevice), string(BuildOnCPU)}},
	{"scaler", []string{string(NoScaler), string(GradScaler)}},
}

// loopValues are the values of the named loops.
func loopValues() []Value {
	out := make([]Value, len(loops))
	for i, l := range loops {
		out[i] = Value{Name: string(l.Name), Label: loopLabels[l.Name]}
	}
	return out
}

// describedLoop is a loop as an object.
type describedLoop struct {
	Outputs  Outputs  `json:"outputs"`
	ZeroGrad ZeroGrad `json:"zero_grad"`
	Build    Build    `json:"build"`
	Scaler   Scaler   `json:"scaler"`
}

// OrPlain returns the loop, or the plain one if it is unknown: workloads that
// were stored before loops had a key do not have it.
func (l TrainingLoop) OrPlain() TrainingLoop {
	if l == (TrainingLoop{}) {
		return plainLoop
	}
	return l
}

// MarshalJSON writes a name, or an object for a described loop.
func (l TrainingLoop) MarshalJSON() ([]byte, error) {
	if l.Name != "" {
		return json.Marshal(l.Name)
	}
	return json.Marshal(describedLoop{l.Outputs, l.ZeroGrad, l.Build, l.Scaler})
}

// UnmarshalJSON reads either. It does not check the values.
func (l *TrainingLoop) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &l.Name) == nil {
		for _, known := range loops {
			if l.Name == known.Name {
				*l = known
			}
		}
		return nil
	}
	o := describedLoop{plainLoop.Outputs, plainLoop.ZeroGrad, plainLoop.Build, plainLoop.Scaler}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return errors.New("it must be a name, or an object with outputs, zero_grad, build and scaler")
	}
	*l = TrainingLoop{"", o.Outputs, o.ZeroGrad, o.Build, o.Scaler}
	return nil
}

// check reports an unknown name or an invalid choice.
func (l *TrainingLoop) check(k *Key) error {
	if l.Name != "" {
		return invalid.OneOf(k.Name, string(l.Name), k.names())
	}
	for i, value := range []string{string(l.Outputs), string(l.ZeroGrad), string(l.Build), string(l.Scaler)} {
		part := k.Parts[i]
		if err := invalid.OneOf(k.Name+"."+part.Name, value, part.Values); err != nil {
			return err
		}
	}
	return nil
}

// IsLibrarys reports whether the loop is a library's.
func (l TrainingLoop) IsLibrarys() bool { return l.Name != PlainLoop && l.Name != "" }

// trainerDropsCache reports whether Hugging Face's Trainer sets use_cache to false, as
// it does since transformers 5.
func (w *Workload) trainerDropsCache() bool {
	return w.Loop.Name == TrainerLoop && !w.Libraries().Transformers.Before(5, 0)
}

// OtherLoops returns the workload in each of the other named loops. There are
// none if loops do not matter, and for a model that libraries do not train; for
// batches of varying length it would take too long.
func (w *Workload) OtherLoops() []*Workload {
	if w.Phase != Train || w.Loop.Name == "" || w.Parallel != nil || w.Versions != nil || w.Program != nil || w.Varied() || !w.isTransformers() {
		return nil
	}
	var out []*Workload
	for _, l := range loops {
		in := *w
		in.Loop = l
		if l.Name != w.Loop.Name && in.CheckOptimizer() == nil {
			out = append(out, &in)
		}
	}
	return out
}

// loopLabels are the labels of loops.
var loopLabels = map[LoopName]string{
	PlainLoop: "a plain loop", TrainerLoop: "Hugging Face's Trainer", LightningLoop: "Lightning's Trainer", AccelerateLoop: "Accelerate's loop",
}

// Label returns the label of a loop.
func (n LoopName) Label() string { return loopLabels[n] }

// String returns the label of the loop, or describes it.
func (l TrainingLoop) String() string {
	if l.Name != "" {
		return loopLabels[l.Name]
	}
	text := fmt.Sprintf("a loop with outputs %s, zero_grad %s, the model built on the %s", l.Outputs, l.ZeroGrad, l.Build)
	if l.Scaler == GradScaler {
		text += ", a gradient scaler"
	}
	return text
}
