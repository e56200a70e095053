package server

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"memorymark/internal/admission"
)

// A client that asks for long comparisons still gets predictions meanwhile: requests
// of one address wait for each other, and none is refused.
func TestPredictionsDuringComparisons(t *testing.T) {
	c := start(t)
	var comparisons sync.WaitGroup
	done := make(chan struct{})
	for i := range 3 { // two of which are answered at a time
		comparisons.Go(func() {
			body := fmt.Sprintf(`{"workload":{"model":"bert","batch":%d,"config":{"num_hidden_layers":2}}}`, i+1)
			into[CardsComparison](t, c.post("/v1/comparisons/cards", body), http.StatusOK)
		})
	}
	go func() {
		comparisons.Wait()
		close(done)
	}()
	predictions := 0
	for ended := false; !ended; predictions++ {
		select {
		case <-done:
			ended = true
		default:
		}
		into[map[string]any](t, c.post("/v1/predictions", fmt.Sprintf(`{"model":"resnet-18","batch":%d}`, predictions+1)), http.StatusOK)
	}
	t.Logf("%d predictions meanwhile", predictions)
}

// fill takes all slots of a gate, as two clients of which each takes what it may have.
func fill(t *testing.T, g *admission.Gate) (release func()) {
	t.Helper()
	release = func() {}
	for _, client := range []string{"one", "two"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if one, err := g.Acquire(ctx, client, math.MaxInt64); err == nil {
			before := release
			release = func() { before(); one() }
		}
	}
	return release
}

func waiting(g *admission.Gate) int {
	_, waiting := g.Load()
	return waiting
}

func busy(g *admission.Gate) bool {
	taken, waiting := g.Load()
	return taken > 0 || waiting > 0
}
