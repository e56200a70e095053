package server

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/workload"
)

// workloadSchema describes a workload by its keys. What only a form needs is in
// extensions: x-label, x-unit and x-values, what the values are called.
func workloadSchema() *huma.Schema {
	s := &huma.Schema{
		Type: "object", Properties: make(map[string]*huma.Schema), AdditionalProperties: false,
		Description: "What is trained. Every key has a default but model, or config.",
	}
	for _, key := range workload.Keys() {
		s.Properties[key.Name] = keySchema(key)
	}
	return s
}

// WorkloadProperties are the JSON schemas of a workload's keys.
func WorkloadProperties() (map[string]json.RawMessage, error) {
	out := make(map[string]json.RawMessage)
	for name, s := range workloadSchema().Properties {
		var err error
		if out[name], err = s.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// kinds are the schemas of what keys hold.
var kinds = map[workload.Kind]huma.Schema{
	workload.Text:   {Type: "string"},
	workload.Whole:  {Type: "integer", Format: "int64"},
	workload.Number: {Type: "number", Format: "double"},
	workload.Switch: {Type: "boolean"},
	workload.Choice: {Type: "string"},
	workload.Object: {Type: "object", AdditionalProperties: true},
	workload.Counts: {AnyOf: []*huma.Schema{
		{Type: "array", Items: &huma.Schema{Type: "integer"}},
		{Type: "object", AdditionalProperties: &huma.Schema{Type: "integer"}},
	}},
}

func keySchema(key workload.Key) *huma.Schema {
	s := kinds[key.Kind]
	s.Description = key.Help + "."
	if key.Else != "" {
		s.Description += " Default: " + key.Else + "."
	}
	s.Default, s.Enum = key.Initial(), enum(key.Name)
	if key.Label != "" {
		s.Extensions = map[string]any{"x-label": key.Label}
		if key.Kind == workload.Whole || key.Kind == workload.Number {
			s.Extensions["x-unit"] = key.Unit
		}
		if key.Values != nil {
			s.Extensions["x-values"] = key.Values
		}
	}
	switch {
	case key.Parts != nil:
		return orDescribed(key, &s)
	case key.Fields != nil && key.Label != "": // a number of a form, or an object
		s.Extensions["x-unit"] = key.Fields[0].Unit
		number, object := kinds[workload.Whole], kinds[workload.Object]
		s.Type, s.AdditionalProperties, s.AnyOf = "", nil, []*huma.Schema{&number, &object}
	}
	return &s
}

// orDescribed is the schema of a choice that an object can describe, too.
func orDescribed(key workload.Key, name *huma.Schema) *huma.Schema {
	object := &huma.Schema{Type: "object", Properties: make(map[string]*huma.Schema), AdditionalProperties: false}
	for _, part := range key.Parts {
		s := &huma.Schema{Type: "string", Default: part.Values[0]}
		for _, v := range part.Values {
			s.Enum = append(s.Enum, v)
		}
		object.Properties[part.Name] = s
	}
	out := &huma.Schema{
		Description: name.Description, Default: name.Default, Extensions: name.Extensions,
		AnyOf: []*huma.Schema{{Type: "string", Enum: name.Enum}, object},
	}
	return out
}

// enum is what a key can be; nil for one that is no choice between names.
func enum(key string) []any {
	var out []any
	for _, c := range workload.Choices(key) {
		out = append(out, c)
	}
	return out
}

// precisionName and optimizerName are values of a workload's keys in other
// requests.
type (
	precisionName workload.Precision
	optimizerName workload.Optimizer
)

// Schema implements huma.SchemaProvider.
func (precisionName) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: "string", Enum: enum("precision")}
}

// Schema implements huma.SchemaProvider.
func (optimizerName) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: "string", Enum: enum("optimizer")}
}

// named turns names of a request into those of a workload.
func named[To, From ~string](names []From) []To {
	var out []To
	for _, n := range names {
		out = append(out, To(n))
	}
	return out
}
