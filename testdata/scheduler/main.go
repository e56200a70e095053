// Command scheduler is a program of somebody else's that asks MemoryMark which
// of some cards a workload trains on, and reads a snapshot.
package main

import (
	"fmt"
	"log"
	"os"

	"memorymark"
	"memorymark/snapshot"
	"memorymark/trace"
)

func main() {
	w, err := memorymark.ParseWorkload([]byte(os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"t4", "a100"} {
		card, err := memorymark.FindCard(name)
		if err != nil {
			log.Fatal(err)
		}
		batch, err := memorymark.Largest(w, card)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %d\n", card.ID, batch)
	}
	file, err := os.Open(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	s, err := snapshot.Read(file, snapshot.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	failed := 0
	for _, e := range s.Devices[0].Events {
		if e.Action == trace.OutOfMemory {
			failed++
		}
	}
	fmt.Printf("%d out of memory\n", failed)
}
