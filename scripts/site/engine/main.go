//go:build !js

// Command engine is the program that the page of the site runs in a worker of the browser:
// it answers what the page would ask of a server.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "engine: this program runs in a browser; make site compiles it")
	os.Exit(2)
}
