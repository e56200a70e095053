package memorymark_test

import (
	"bytes"
	"cmp"
	"fmt"
	"log"
	"os"
	"slices"

	"memorymark"
)

// What a workload takes on a card.
func ExamplePredict() {
	w, err := memorymark.ParseWorkload([]byte(`{"model": "gpt2", "batch": 8, "precision": "amp-bf16"}`))
	if err != nil {
		log.Fatal(err)
	}
	card, err := memorymark.FindCard("a10")
	if err != nil {
		log.Fatal(err)
	}
	p, err := memorymark.Predict(w, card)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Fits, p.PeakReserved())
	// Output: true 3.20 GiB
}

// The largest batch that trains.
func ExampleLargest() {
	w, err := memorymark.ParseWorkload([]byte(`{"model": "bert", "sequence": 128}`))
	if err != nil {
		log.Fatal(err)
	}
	card, err := memorymark.FindCard("NVIDIA A10G")
	if err != nil {
		log.Fatal(err)
	}
	batch, err := memorymark.Largest(w, card)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(batch)
	// Output: 266
}

// An error names every key that is wrong.
func ExampleParseWorkload() {
	_, err := memorymark.ParseWorkload([]byte(`{"model": "gpt2", "batch": 0, "precison": "bf16"}`))
	fmt.Println(err)
	// Output: "precison" is not a key; did you mean precision?; batch is 0; it must be at least 1
}

// Whether a run that died would have fitted with expandable segments.
func ExampleReplay() {
	recorded, err := os.ReadFile("testdata/truth/snapshots/gpt2_oom.pickle.xz")
	if err != nil {
		log.Fatal(err)
	}
	yes := true
	answer, err := memorymark.Replay(bytes.NewReader(recorded), memorymark.WhatIf{ExpandableSegments: &yes})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Fits, answer.MatchesRecording)
	// Output: true true
}

// Amounts are exact, and print as people read them.
func ExampleParseBytes() {
	limit, err := memorymark.ParseBytes("22.5 GiB")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(int64(limit), limit)
	// Output: 24159191040 22.50 GiB
}

// Which models of a family train on a card.
func ExampleModels() {
	card, err := memorymark.FindCard("t4")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range memorymark.Models() {
		if m.Config.ModelType != "gpt2" {
			continue
		}
		w, err := memorymark.ParseWorkload(fmt.Appendf(nil, `{"model": %q, "batch": 8}`, m.ID))
		if err != nil {
			log.Fatal(err)
		}
		p, err := memorymark.Predict(w, card)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.ID, p.Fits)
	}
	// Output:
	// distilgpt2 true
	// gpt2 true
	// gpt2-medium true
	// gpt2-large false
	// gpt2-xl false
}

// The cards of the catalog, those with the most memory first.
func ExampleCards() {
	cards := memorymark.Cards()
	slices.SortFunc(cards, func(a, b *memorymark.Card) int { return cmp.Compare(b.Memory.Bytes, a.Memory.Bytes) })
	for _, c := range cards[:3] {
		fmt.Println(c.ID, c.Memory.Bytes)
	}
	// Output:
	// b200 178.36 GiB
	// h200 139.80 GiB
	// h20 95.00 GiB
}
