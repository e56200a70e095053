// Command terminal draws docs/images/terminal.svg: a moving picture of a
// terminal in which examples/train.py runs on a card that is not there. What it
// shows is what the program printed; a test of the documents runs the commands
// again and compares. It also draws docs/images/tools.svg, bars of the tools that
// docs/benchmarks.md compares.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// commands are what is shown: a program that runs out of memory on a card that is not
// there, and the change with which it fits.
var commands = []string{
	"memorymark run --gpu rtx-4090 -- python train.py 24",
	"memorymark run --gpu rtx-4090 -- python train.py 16",
}

// columns is how wide the terminal is.
const columns = 92

func main() {
	binary := flag.String("memorymark", "build/memorymark", "the program")
	output := flag.String("o", "docs/images/terminal.svg", "the picture to write")
	flag.Parse()
	err := record(*binary, *output)
	if err == nil {
		err = writeBars("docs/images/tools.svg")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1)
	}
}

func record(binary, output string) error {
	var scenes []scene
	for _, command := range commands {
		answer, err := run(binary, strings.Fields(command)[1:])
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		scenes = append(scenes, scene{command, shown(answer)})
	}
	return os.WriteFile(output, []byte(draw(scenes)), 0o644)
}

// run runs the program as in a terminal, next to the example; python must have PyTorch.
func run(binary string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	binary, err := filepath.Abs(binary)
	if err != nil {
		return "", err
	}
	c := exec.CommandContext(ctx, binary, args...)
	c.Dir = "examples"
	c.Env = append(os.Environ(), "CLICOLOR_FORCE=1", "TERM=xterm-256color", fmt.Sprintf("COLUMNS=%d", columns))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	const outOfMemory = 4
	if errors.As(err, &exit) && exit.ExitCode() == outOfMemory {
		err = nil
	}
	return string(out), err
}

// varies matches lines of a report that differ from machine to machine.
var varies = regexp.MustCompile(`^ +(host memory: |about )`)

// shown are the lines of an answer that the picture has: of a traceback only its end, and
// nothing that differs from machine to machine. What is too long is cut.
func shown(answer string) []string {
	var out []string
	traceback := false
	for _, line := range strings.Split(strings.TrimRight(answer, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "Traceback "):
			traceback = true
			out = append(out, line, "…")
			continue
		case traceback && strings.HasPrefix(line, " "), varies.MatchString(line):
			continue
		}
		traceback = traceback && line != ""
		if runes := []rune(line); len(runes) > columns && !strings.Contains(line, "\x1b") {
			line = string(runes[:columns-1]) + "…"
		}
		out = append(out, line)
	}
	return out
}
