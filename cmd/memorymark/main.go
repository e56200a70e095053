// Memorymark tells people who train neural networks where their GPU memory
// goes, and what to do about it.
//
//	memorymark snapshot info oom.pickle
package main

import (
	"context"
	"os"

	"memorymark/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
