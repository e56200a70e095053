package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/invalid"
	"memorymark/internal/models"
)

// Adapter is a PEFT adapter, trained instead of a model's own weights. Its
// scale, alpha, needs no memory.
type Adapter struct {
	Kind          AdapterKind `json:"kind"`
	Rank          int64       `json:"rank"`
	Targets       Targets     `json:"targets,omitempty"` // none: PEFT's own for the model type
	Dropout       float64     `json:"dropout,omitempty"`
	DoRA          bool        `json:"dora,omitempty"`
	ModulesToSave []string    `json:"modules_to_save,omitempty"`
	TaskType      TaskType    `json:"task_type,omitempty"`
	// AutocastAdapterDType is get_peft_model's argument of that name: adapters are in
	// float32 on a model in bfloat16. False keeps them in bfloat16; a quantized model
	// is cast to bfloat16 after it got its adapters. Nil is PEFT's default, true,
	// except for weights in bfloat16 under a library's autocast.
	AutocastAdapterDType *bool `json:"autocast_adapter_dtype,omitempty"`
}

// Float32Adapters reports whether adapters are in float32 whatever the model's type.
func (w *Workload) Float32Adapters() bool {
	if given := w.Adapter.AutocastAdapterDType; given != nil {
		return *given
	}
	return !w.loadedInBF16()
}

// loadedInBF16 reports whether frozen weights are in bfloat16 under autocast, as
// from_pretrained loads them (transformers/modeling_utils.py, dtype="auto"): so is
// the base model of adapters that a library trains, since it is not updated.
func (w *Workload) loadedInBF16() bool {
	return w.Precision == AMPBF16 && w.Adapter != nil && w.Quantize == NotQuantized && w.Loop.IsLibrarys()
}

// AdapterKind is a method of PEFT.
type AdapterKind string

// LoRA is the modelled method.
const LoRA AdapterKind = "lora"

// TaskType is task_type of a PEFT configuration: for some tasks, the head is
// trained whole.
type TaskType string

// Quantize is how weights are stored by bitsandbytes.
type Quantize string

// The formats of stored weights.
const (
	NotQuantized Quantize = "none"
	NF4          Quantize = "nf4"
	NF4Double    Quantize = "nf4-double"
	Int8         Quantize = "int8"
)

// AllLinear selects all linear layers of a model except its output.
const AllLinear = "all-linear"

// Targets are the layers that get an adapter: their names, or AllLinear alone.
type Targets []string

// UnmarshalJSON takes a name or a list of names. A name with commas is a list.
func (t *Targets) UnmarshalJSON(data []byte) error {
	var name string
	if json.Unmarshal(data, &name) == nil {
		*t = strings.Split(name, ",")
		return nil
	}
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return errors.New(`it must be "all-linear" or a list of names`)
	}
	*t = names
	return nil
}

// MarshalJSON writes all-linear as PEFT takes it.
func (t Targets) MarshalJSON() ([]byte, error) {
	if len(t) == 1 && t[0] == AllLinear {
		return json.Marshal(AllLinear)
	}
	return json.Marshal([]string(t))
}

const (
	defaultRank = 16
	maxRank     = 1 << 16
	maxNames    = 100 // each is compared with every module
)

// UnmarshalJSON reads an adapter or its rank, and names an unknown key.
func (a *Adapter) UnmarshalJSON(data []byte) error {
	type plain Adapter
	read := struct {
		plain
		Alpha json.RawMessage `json:"alpha"` // memory does not depend on it
	}{plain: plain{Kind: LoRA, Rank: defaultRank}}
	if json.Unmarshal(data, &read.Rank) == nil { // a number is the rank
		*a = Adapter(read.plain)
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&read)
	*a = Adapter(read.plain)
	var mistyped *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &mistyped):
		return err
	case mistyped.Field == "":
		return errors.New("it must be a rank, or an object with one")
	default:
		return fmt.Errorf("its %s must not be a %s", mistyped.Field[strings.LastIndex(mistyped.Field, ".")+1:], mistyped.Value)
	}
}

// check reports the errors of an adapter.
func (a *Adapter) check(w *Workload) error {
	if a == nil {
		return nil
	}
	wrong := func(format string, values ...any) error { return invalid.At("adapter", fmt.Errorf(format, values...)) }
	switch {
	case a.Kind != LoRA:
		return wrong("adapter: kind is %q; it must be lora", a.Kind)
	case a.Rank < 1 || a.Rank > maxRank:
		return wrong("adapter: rank is %d; it must be from 1 to %d", a.Rank, maxRank)
	case len(a.Targets) > maxNames || len(a.ModulesToSave) > maxNames:
		return wrong("adapter: there are %d targets and %d modules_to_save; of each there may be %d", len(a.Targets), len(a.ModulesToSave), maxNames)
	case a.Dropout < 0 || a.Dropout >= 1:
		return wrong("adapter: dropout is %v; it must be at least 0 and below 1", a.Dropout)
	case slices.Contains(a.Targets, AllLinear) && len(a.Targets) > 1:
		return wrong("adapter: targets has both %s and names; it must be one or the other", AllLinear)
	case !slices.Contains(models.TaskTypes(), string(a.TaskType)):
		return wrong("adapter: task_type is %q; it must be one of %s", a.TaskType, strings.Join(models.TaskTypes()[1:], ", "))
	case len(a.Targets) == 0 && w.Config != nil && models.LoRATargets(w.Config.ModelType) == nil:
		return wrong("adapter: PEFT has no default targets for a %s; give targets, such as %s", w.Config.ModelType, AllLinear)
	case w.Config != nil:
		return invalid.At("adapter", models.CheckTask(w.Config.ModelType, w.Config.Architecture, string(a.TaskType)))
	}
	return nil
}

// checkQuantize reports weights that cannot be trained: bitsandbytes' weights
// need an adapter.
func (w *Workload) checkQuantize() error {
	if w.Quantize != NotQuantized && w.Adapter == nil && (w.Phase == Train || w.Phase == Backward) {
		return invalid.At("quantize", fmt.Errorf("quantize is %q; quantized weights cannot be trained, so it needs an adapter", w.Quantize))
	}
	if w.Quantize != NotQuantized && w.Adapter != nil && w.Adapter.DoRA {
		return invalid.At("quantize", fmt.Errorf("quantize is %q, which is not modelled with DoRA", w.Quantize))
	}
	return nil
}
