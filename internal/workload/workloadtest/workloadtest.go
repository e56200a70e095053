// Package workloadtest gives tests workloads and cards.
package workloadtest

import (
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Parse reads a workload from JSON.
func Parse[T ~string | ~[]byte](tb testing.TB, text T) *workload.Workload {
	tb.Helper()
	w, err := workload.Parse([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return w
}

// Card finds a card of the catalog.
func Card(tb testing.TB, id string) *gpu.Card {
	tb.Helper()
	card, err := gpu.Find(id)
	if err != nil {
		tb.Fatal(err)
	}
	return card
}
