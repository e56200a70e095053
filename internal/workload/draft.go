package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Draft is a workload as it was given: the keys that were, as JSON. A key that
// is absent takes its default; one that is 0 does not.
type Draft map[string]json.RawMessage

// ParseDraft reads a JSON object.
func ParseDraft(data []byte) (Draft, error) {
	d := make(Draft)
	if err := json.Unmarshal(data, &d); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("workload: not JSON, at byte %d: %w", syntax.Offset, err)
		}
		return nil, fmt.Errorf("workload: %s is not a JSON object", shorten(data))
	}
	if d == nil {
		return nil, errors.New("workload: null is not a JSON object")
	}
	return d, nil
}

// Keys returns the keys that a workload can have, in the order in which they
// are explained.
func Keys() []string {
	t := reflect.TypeFor[Workload]()
	var keys []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	return keys
}

// Set gives a key a value as people write it on a command line: text as it is,
// numbers, true and false. Of config it takes JSON.
func (d Draft) Set(key, text string) {
	field, ok := fieldNames(&Workload{})[key]
	if _, isText := field.(*string); ok && !isText && json.Valid([]byte(text)) {
		d[key] = json.RawMessage(text)
		return
	}
	d[key] = json.RawMessage(strconv.Quote(text))
}

// Text returns the value of a key that is text, "" if there is none.
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
	if err := json.Unmarshal(data, &base); err != nil {
		return fmt.Errorf("not a config.json: %w", err)
	}
	if raw, ok := d["config"]; ok {
		if err := json.Unmarshal(raw, &own); err != nil {
			return fmt.Errorf("config is %s; it must be an object", shorten(raw))
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
// *InvalidError, names everything that is wrong.
func (d Draft) Workload() (*Workload, error) {
	w, wrong := d.settings()
	wrong.add(w.resolveModel())
	if _, given := d["image"]; !given && w.Config != nil {
		w.Config.readInt("image_size", &w.Image) // a ViT takes no other
	}
	w.validate(wrong, d)
	if len(wrong.Problems) > 0 {
		return nil, wrong
	}
	return w, nil
}

// WithoutModel is a workload of a model that is not described here: a user's
// own program. The draft's model is only its name.
func (d Draft) WithoutModel() (*Workload, error) {
	w, wrong := d.settings()
	if w.Config != nil {
		wrong.add(errors.New("config cannot be given for a model of your own"))
	}
	w.validate(wrong, d)
	if len(wrong.Problems) > 0 {
		return nil, wrong
	}
	return w, nil
}

// settings reads the keys that were given over the defaults.
func (d Draft) settings() (*Workload, *InvalidError) {
	w, wrong := Default(), &InvalidError{}
	fields := fieldNames(w)
	for _, key := range slices.Sorted(maps.Keys(d)) {
		field, ok := fields[key]
		if !ok {
			wrong.add(at(key, unknownKey(key)))
			continue
		}
		if isNull(d[key]) {
			continue
		}
		if err := json.Unmarshal(d[key], field); err != nil {
			wrong.add(at(key, wrongKind(key, d[key], field, err)))
		}
	}
	return w, wrong
}

// resolveModel puts the configuration of the catalog behind the workload's own
// keys.
func (w *Workload) resolveModel() error {
	if w.Model == "" {
		if w.Config == nil {
			return at("model", errors.New("there is no model; give model, an id of the catalog, or config, the object of a config.json"))
		}
		return at("config", w.Config.settle())
	}
	m, err := FindModel(w.Model)
	if err != nil {
		return at("model", err)
	}
	w.Model = m.ID
	w.Config = m.Config.with(w.Config)
	return at("config", w.Config.settle())
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// Name is what the workload's model is called: its id of the catalog, or its
// architecture.
func (w *Workload) Name() string {
	if w.Model != "" {
		return w.Model
	}
	return w.Config.Architecture
}
