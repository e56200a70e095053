package memorymark_test

import (
	"bytes"
	"fmt"
	"log"
	"os"

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
