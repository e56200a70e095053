// Package check is what workloads may take: a file of them with their
// budgets, a baseline of what they took before, and what grew since.
package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"memorymark/internal/bytesize"
	"memorymark/internal/workload"
)

// File is a file of budgets, as memory.yaml.
type File struct {
	// Baseline is where it is kept what the workloads took before, next to the
	// file; empty if nothing is compared.
	Baseline string
	// Allow is the share by which a workload may grow beyond its baseline.
	Allow float64
	Items []Item
}

// Item is a workload with its budget.
type Item struct {
	Name  string
	Draft workload.Draft
	Line  int            // of the file
	Max   bytesize.Bytes // of what PyTorch reserves; 0 for what the card has
}

// Read reads a file of budgets.
func Read(data []byte) (*File, error) {
	var raw any
	if err := yaml.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, fmt.Errorf("not a file of budgets: %w", err)
	}
	var given struct {
		Baseline  string                       `json:"baseline"`
		Allow     string                       `json:"allow"` // as "1%"
		Workloads []map[string]json.RawMessage `json:"workloads"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return nil, fmt.Errorf("not a budget file with the keys workloads, baseline and allow: %w", err)
	}
	lines := linesOf(data)
	f := &File{Baseline: given.Baseline}
	if f.Allow, err = parseShare(given.Allow); err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for i, keys := range given.Workloads {
		item, err := newItem(keys)
		if err != nil {
			return nil, fmt.Errorf("workload %d: %w", i+1, err)
		}
		if names[item.Name] {
			return nil, fmt.Errorf("workload %d: another one is also called %q; give each its own name", i+1, item.Name)
		}
		names[item.Name] = true
		if i < len(lines) {
			item.Line = lines[i]
		}
		f.Items = append(f.Items, item)
	}
	if len(f.Items) == 0 {
		return nil, errors.New("there are no workloads in it")
	}
	return f, nil
}

// linesOf are the lines of a file on which its workloads begin.
func linesOf(data []byte) []int {
	var file struct {
		Workloads []yaml.Node `yaml:"workloads"`
	}
	_ = yaml.Unmarshal(data, &file) // which was read before
	var lines []int
	for i := range file.Workloads {
		lines = append(lines, file.Workloads[i].Line)
	}
	return lines
}

func newItem(keys map[string]json.RawMessage) (Item, error) {
	d := make(workload.Draft, len(keys))
	item := Item{Draft: d}
	for key, raw := range keys {
		var text string
		_ = json.Unmarshal(raw, &text) // empty if it is no text, which is said below
		switch key {
		case "name":
			item.Name = text
		case "max":
			n, err := bytesize.Parse(text)
			if err != nil || n <= 0 {
				return item, fmt.Errorf("max is %s; it must be an amount of memory, such as 22GiB", raw)
			}
			item.Max = n
		case "card":
			d["gpu"] = raw
		default:
			d[key] = raw
		}
	}
	if keys["card"] != nil && keys["gpu"] != nil {
		return item, errors.New("card and gpu both name the GPU; give only one")
	}
	if item.Name == "" {
		item.Name = d.Text("id")
	}
	if item.Name == "" {
		item.Name = d.Text("model")
	}
	if item.Name == "" {
		return item, errors.New("it has no name")
	}
	return item, nil
}

// parseShare reads a share, as "1%" or "0.5 %"; none is 0.
func parseShare(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	var share float64
	number := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%"))
	if err := json.Unmarshal([]byte(number), &share); err != nil || share < 0 || share > 1000 || math.IsNaN(share) {
		return 0, fmt.Errorf("allow is %q; it must be a percentage, such as 1%%", text)
	}
	return share / 100, nil
}
