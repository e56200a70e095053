package memorymark_test

import (
	"context"
	"fmt"
	"log"

	"memorymark"
)

// What a job must change to fit the card that a queue has.
func ExampleFit() {
	draft, err := memorymark.ParseDraft([]byte(`{"model": "gpt2", "batch": 128}`))
	if err != nil {
		log.Fatal(err)
	}
	card, err := memorymark.FindCard("t4")
	if err != nil {
		log.Fatal(err)
	}
	fit, err := memorymark.Fit(context.Background(), draft, card)
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range fit.Options {
		for _, c := range o.Changes {
			fmt.Print(o.Verdict, " with ", c.Label)
		}
		fmt.Println()
	}
	// Output: fits with batch 32 accumulated 4 times
}

// How to train on the cards that a cluster has.
func ExamplePlan() {
	draft, err := memorymark.ParseDraft([]byte(`{"model": "gpt2", "sequence": 1024}`))
	if err != nil {
		log.Fatal(err)
	}
	card, err := memorymark.FindCard("rtx-4090")
	if err != nil {
		log.Fatal(err)
	}
	plan, err := memorymark.Plan(context.Background(), memorymark.PlanQuestion{
		Draft: draft, Cards: []memorymark.Holding{{Card: card, Count: 2}}, Full: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Fastest.GPUs, plan.Fastest.Setup)
	// Output: 2 FSDP2, bf16 mixed precision
}
