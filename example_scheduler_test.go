package memorymark_test

import (
	"fmt"
	"log"
	"slices"

	"memorymark"
)

// place returns the smallest of some cards that a workload trains on.
func place(w *memorymark.Workload, cards []*memorymark.Card) (*memorymark.Card, error) {
	cards = slices.Clone(cards)
	slices.SortFunc(cards, func(a, b *memorymark.Card) int { return int(a.Memory.Bytes - b.Memory.Bytes) })
	for _, card := range cards {
		p, err := memorymark.Predict(w, card)
		if err != nil {
			return nil, err
		}
		if p.Fits {
			return card, nil
		}
	}
	return nil, fmt.Errorf("%s at batch %d fits none of the cards", w.Name(), w.Batch)
}

// A scheduler that puts each job on the smallest card of a cluster that it
// trains on.
func Example_scheduler() {
	var cluster []*memorymark.Card
	for _, name := range []string{"h100", "t4", "a10"} {
		card, err := memorymark.FindCard(name)
		if err != nil {
			log.Fatal(err)
		}
		cluster = append(cluster, card)
	}
	for _, job := range []string{
		`{"model": "bert", "batch": 16}`,
		`{"model": "gpt2", "batch": 64, "precision": "amp-fp16"}`,
		`{"model": "llama-3.2-1b", "batch": 4, "sequence": 512, "precision": "bf16"}`,
		`{"model": "llama-3.1-8b", "batch": 1}`,
	} {
		w, err := memorymark.ParseWorkload([]byte(job))
		if err != nil {
			log.Fatal(err)
		}
		card, err := place(w, cluster)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(w.Name(), "->", card.ID)
	}
	// Output:
	// bert -> t4
	// gpt2 -> t4
	// llama-3.2-1b -> a10
	// llama-3.1-8b at batch 1 fits none of the cards
}
