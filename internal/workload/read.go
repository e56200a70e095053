package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Entry is one workload of a file, or its error.
type Entry struct {
	Line  int // where it begins, from 1; 0 if unknown
	Draft Draft
	Err   error
}

// ReadJSON reads workloads from JSON: one object, a list of them, or one a
// line. An invalid line does not affect the others.
func ReadJSON(data []byte) []Entry {
	text := bytes.TrimSpace(data)
	var list []json.RawMessage
	switch {
	case len(text) == 0:
		return nil
	case text[0] == '[' && json.Unmarshal(text, &list) == nil:
		out := make([]Entry, len(list))
		for i, raw := range list {
			out[i].Draft, out[i].Err = ParseDraft(raw)
		}
		return out
	case json.Valid(text) || bytes.IndexByte(text, '\n') < 0:
		d, err := ParseDraft(text)
		return []Entry{{1, d, err}}
	}
	var out []Entry
	line := 0
	for row := range bytes.Lines(data) {
		line++
		if row = bytes.TrimSpace(row); len(row) > 0 {
			d, err := ParseDraft(row)
			out = append(out, Entry{line, d, err})
		}
	}
	return out
}

// ReadYAML reads workloads from YAML: one mapping, a list of them, or several
// documents.
func ReadYAML(data []byte) ([]Entry, error) {
	var out []Entry
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := d.Decode(&node)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not YAML: %w", err)
		}
		for _, n := range items(&node) {
			draft, err := draftOfYAML(n)
			out = append(out, Entry{n.Line, draft, err})
		}
	}
}

// items returns the nodes of a document that are one workload each.
func items(document *yaml.Node) []*yaml.Node {
	n := document
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

func draftOfYAML(n *yaml.Node) (Draft, error) {
	var keys map[string]any
	if err := n.Decode(&keys); err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	d := make(Draft, len(keys))
	for key, value := range keys {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("workload: %s cannot be written as JSON: %w", key, err)
		}
		d[key] = raw
	}
	return d, nil
}
