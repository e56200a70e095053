package workload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/models"
	"memorymark/internal/workbudget"
)

// Draft is a workload as the user gave it: the given keys, as JSON. An absent
// key takes its default; a key that is 0 does not.
type Draft map[string]json.RawMessage

// ParseDraft reads a JSON object.
func ParseDraft(data []byte) (Draft, error) {
	d := make(Draft)
	if err := json.Unmarshal(data, &d); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("workload: not JSON, at byte %d: %w", syntax.Offset, err)
		}
		return nil, fmt.Errorf("workload: %s is not a JSON object", invalid.Shorten(data))
	}
	if d == nil {
		return nil, errors.New("workload: null is not a JSON object")
	}
	return d, nil
}

// Set gives a key a value as people write it on a command line: text as it is,
// numbers, true and false, memory with its unit, choices in whatever case. For
// config it takes JSON, for parallel also a kind and its options.
func (d Draft) Set(key, text string) {
	k, ok := findKey(key)
	if size, err := bytesize.Parse(text); err == nil && k.Unit == "GiB" && !json.Valid([]byte(text)) {
		text = strconv.FormatFloat(float64(size)/float64(bytesize.GiB), 'g', -1, 64)
	}
	for _, name := range k.names() {
		if strings.EqualFold(name, text) {
			text = name
		}
	}
	if ok && k.takesJSON(text) && json.Valid([]byte(text)) {
		d[key] = json.RawMessage(text)
		return
	}
	if key == "parallel" {
		d[key] = parallelText(text)
		return
	}
	d[key] = json.RawMessage(strconv.Quote(text))
}

// SetField gives a field of a key that is an object a value as people write it.
func (d Draft) SetField(key string, f Field, text string) {
	object := make(map[string]json.RawMessage)
	if raw, ok := d[key]; ok && json.Unmarshal(raw, &object) != nil {
		return // reported when the draft is read
	}
	if f.Kind == Text || !json.Valid([]byte(text)) {
		text = strconv.Quote(text)
	}
	object[f.Name] = json.RawMessage(text)
	d[key], _ = json.Marshal(object)
}

// takesJSON reports whether the value of a key is JSON and not text: for a
// choice, an object that describes an unnamed value.
func (k *Key) takesJSON(text string) bool {
	switch k.Kind {
	case Text:
		return false
	case Choice:
		return k.Parts != nil && strings.HasPrefix(text, "{")
	default:
		return true
	}
}

// Text returns the value of a text key, "" if it is absent.
func (d Draft) Text(key string) string {
	var s string
	if json.Unmarshal(d[key], &s) != nil {
		return ""
	}
	return s
}

// UseConfig takes the model from the object of a config.json; the draft's own
// config overrides its keys.
func (d Draft) UseConfig(data []byte) error {
	base, own := make(map[string]json.RawMessage), make(map[string]json.RawMessage)
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("it is empty; it must be a config.json")
	}
	if err := json.Unmarshal(data, &base); err != nil {
		return fmt.Errorf("not a config.json: %w", err)
	}
	if raw, ok := d["config"]; ok {
		if err := json.Unmarshal(raw, &own); err != nil {
			return fmt.Errorf("config is %s; it must be an object", invalid.Shorten(raw))
		}
	}
	maps.Copy(base, own)
	merged, err := json.Marshal(base)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	d["config"] = merged
	delete(d, "model")
	return nil
}

// Workload fills in defaults, finds the model, and validates. The error, an
// *invalid.Error, names every problem.
func (d Draft) Workload() (*Workload, error) { return d.workload(false) }

// WorkloadWithin is Workload for one of many drafts of a question: long ones, with
// the length of every sample, are charged to its budget.
func (d Draft) WorkloadWithin(e *workbudget.Budget) (*Workload, error) {
	const bytesPerEvent = 2
	size := 0
	for _, value := range d {
		size += len(value)
	}
	if err := e.Spend(size / bytesPerEvent); err != nil {
		return nil, err
	}
	return d.Workload()
}

func (d Draft) workload(mayBeUnmodelled bool) (*Workload, error) {
	w, wrong := d.settings()
	err := w.resolveModel()
	if _, given := d["image"]; !given && w.Config != nil && !models.CropsImages(w.Config) {
		_ = w.Config.Int("image_size", &w.Image) || w.Config.Within("vision_config").Int("image_size", &w.Image)
	}
	if err == nil && len(wrong.Problems) == 0 {
		err = invalid.At("config", models.Try(w.Config, w.Run()))
	}
	if mayBeUnmodelled && w.Config != nil {
		err = w.settleUnmodelled(err)
	}
	wrong.Add(err)
	if _, given := d["sequence"]; !given && w.Config != nil && w.Unmodelled == "" {
		w.Sequence = min(w.Sequence, models.MaxTokens(w.Config)) // the texts of CLIP are short
	}
	if _, given := d["precision"]; !given && w.Quantize != NotQuantized {
		w.Precision = AMPBF16 // quantized weights compute in bfloat16
	}
	wrong.Add(w.settleLengths(d))
	w.settleVersions(wrong, mayBeUnmodelled)
	w.validate(wrong, d)
	if err := wrong.OrNil(); err != nil {
		return nil, err
	}
	return w, nil
}

// WithoutModel returns a workload whose model is unknown, for a user's own
// program. The draft's model is only its name.
func (d Draft) WithoutModel() (*Workload, error) {
	w, wrong := d.settings()
	if w.Config != nil {
		wrong.Add(errors.New("config does not apply to your own model"))
	}
	w.validate(wrong, d)
	if err := wrong.OrNil(); err != nil {
		return nil, err
	}
	return w, nil
}

// settings overrides the defaults by the given keys.
func (d Draft) settings() (*Workload, *invalid.Error) {
	w, wrong := Default(), &invalid.Error{}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		if wrong.Enough() {
			break
		}
		key, ok := findKey(name)
		if name == "sequence" && isLengths(d[name]) {
			key, _ = findKey("lengths") // a list, or counts by length
		}
		switch {
		case !ok:
			wrong.Add(invalid.At(name, unknownKey(name)))
		case !isNull(d[name]):
			wrong.Add(key.set(w, d[name]))
		}
	}
	return w, wrong
}

// ErrNoModel is the error of a workload without a model.
var ErrNoModel = errors.New("the model is missing; set model to an id from the catalog, or config to the contents of a config.json")

// resolveModel completes the workload's own keys by the configuration of the
// catalog.
func (w *Workload) resolveModel() error {
	if w.Model == "" {
		if w.Config == nil {
			return invalid.At("model", ErrNoModel)
		}
		return invalid.At("config", settle(w.Config))
	}
	m, err := FindModel(w.Model)
	if err != nil {
		return invalid.At("model", err)
	}
	w.Model = m.ID
	w.Config = m.Config.With(w.Config)
	return invalid.At("config", settle(w.Config))
}

// settle completes a configuration and checks whether its model is modelled.
func settle(c *hfconfig.Config) error {
	if err := models.Settle(c); err != nil {
		return err
	}
	_, _, err := models.Find(c)
	return err
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// Name is what the workload's model is called: its id of the catalog or of the
// Hugging Face Hub, its architecture, or its family.
func (w *Workload) Name() string {
	return cmp.Or(w.Model, w.Config.HubID(), w.Config.Architecture, w.Config.ModelType)
}

// following are the keys whose default depends on other keys: the precision on
// quantization, the implementation on the optimizer.
var following = []string{"precision", "optimizer_impl"}

// Draft returns the keys that make the workload, without the card. Keys whose default
// depends on others are left out, unless they must be kept.
func (w *Workload) Draft(keep []string) (Draft, error) {
	d, initial := make(Draft), make(Draft)
	for from, into := range map[*Workload]*Draft{w: &d, Default(): &initial} {
		data, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			return nil, fmt.Errorf("write a workload: %w", err)
		}
	}
	for _, key := range following {
		if bytes.Equal(d[key], initial[key]) && !slices.Contains(keep, key) {
			delete(d, key)
		}
	}
	delete(d, "id")
	delete(d, "gpu")
	return d, nil
}
