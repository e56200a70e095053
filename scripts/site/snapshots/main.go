//go:build !js

// Command snapshots is the program that the page of the site runs in a worker of the browser
// once a snapshot is looked at: it reads the file where it is, and answers what the page would
// ask of a server.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "snapshots: this program runs in a browser; make site compiles it")
	os.Exit(2)
}
