// Command kubernetes annotates a Kubernetes job with the GPU memory that it
// needs, for a scheduler or an admission webhook to read. The job says what it
// trains in an annotation:
//
//	metadata:
//	  annotations:
//	    memorymark/workload: '{"model": "gpt2", "batch": 64, "precision": "amp-bf16"}'
//
// It reads the job as JSON and writes it as JSON:
//
//	kubectl create -f job.yaml --dry-run=client -o json | kubernetes | kubectl apply -f -
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"memorymark"
)

const prefix = "memorymark/"

func main() {
	if err := annotate(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

// annotate adds the annotations to a job.
func annotate(r io.Reader, w io.Writer) error {
	var job map[string]any
	if err := json.NewDecoder(r).Decode(&job); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	metadata, _ := job["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, ok := annotations[prefix+"workload"].(string)
	if !ok {
		return fmt.Errorf("the job has no annotation %sworkload", prefix)
	}
	trained, err := memorymark.ParseWorkload([]byte(text))
	if err != nil {
		return err
	}
	card, needs, err := smallest(trained)
	if err != nil {
		return err
	}
	annotations[prefix+"gpu-memory-bytes"] = strconv.FormatInt(int64(needs), 10)
	annotations[prefix+"gpu-memory"] = needs.String()
	if card != nil {
		annotations[prefix+"smallest-gpu"] = card.ID
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(job)
}

// smallest returns the card with the least memory that a workload trains on,
// nil if there is none, and what it takes there in all.
func smallest(w *memorymark.Workload) (*memorymark.Card, memorymark.Bytes, error) {
	cards := memorymark.Cards()
	slices.SortStableFunc(cards, func(a, b *memorymark.Card) int { return int(a.Memory.Bytes - b.Memory.Bytes) })
	var needs memorymark.Bytes
	for _, card := range cards {
		p, err := memorymark.Predict(w, card)
		if err != nil {
			return nil, 0, err
		}
		needs = p.Breakdown.Total
		if p.Fits {
			return card, needs, nil
		}
	}
	return nil, needs, nil
}
