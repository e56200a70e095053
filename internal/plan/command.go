package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/change"
	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// command is the command line that predicts a candidate on a card.
func (p *planner) command(c *candidate, card *gpu.Card) string {
	return commandOf(p.draft(c.setup, c.batch, c.passes), card)
}

// commandOf writes a workload as flags.
func commandOf(d workload.Draft, card *gpu.Card) string {
	words := []string{"memorymark", "predict"}
	if model := d.Text("model"); model != "" {
		words = append(words, model)
	}
	words = append(words, "--gpu", card.ID)
	for _, key := range slices.Sorted(maps.Keys(d)) {
		switch key {
		case "model", "gpu", "id":
			continue
		case "accumulate":
			if string(d[key]) == "1" {
				continue
			}
		}
		words = append(words, flagOf(key, d[key])...)
	}
	return strings.Join(words, " ")
}

// flagOf is a key as a flag, quoted for a shell where it must be.
func flagOf(key string, value json.RawMessage) []string {
	name := "--" + strings.ReplaceAll(key, "_", "-")
	var text string
	switch {
	case string(value) == "true":
		return []string{name}
	case string(value) == "false":
		return []string{name + "=false"}
	case key == "adapter" && string(value) == change.LoRA:
		return []string{"--lora", "16", "--lora-targets", workload.AllLinear}
	case json.Unmarshal(value, &text) == nil:
		return []string{name, quoted(text)}
	case key == "parallel":
		return []string{name, parallelFlag(value)}
	default:
		return []string{name, quoted(string(value))}
	}
}

// parallelFlag is how people write parallel on a command line.
func parallelFlag(value json.RawMessage) string {
	var p workload.Parallel
	if json.Unmarshal(value, &p) != nil {
		return quoted(string(value))
	}
	out := fmt.Sprintf("%s,gpus=%d", p.Kind, p.GPUs)
	if p.Shard > 0 {
		out += ",shard=" + strconv.FormatInt(p.Shard, 10)
	}
	if p.Tensor > 0 {
		out += ",tensor=" + strconv.FormatInt(p.Tensor, 10)
	}
	if p.MixedPrecision != "" {
		out += ",mixed_precision=" + string(p.MixedPrecision)
	}
	return out
}

// plain are the characters that mean nothing to a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=+@"

// quoted is a word for a shell.
func quoted(word string) string {
	if strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
