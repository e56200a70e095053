// Command terminal draws docs/images/terminal.svg: a moving picture of a
// terminal in which the real program answers three questions. What it shows is
// what the program printed; a test of the documents runs the commands again
// and compares.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// questions are the commands that are shown, and how many lines of each answer.
var questions = []struct {
	command string
	lines   int
}{
	{"memorymark analyze bert --gpu a10", 20},
	{"memorymark snapshot info examples/gpt2_oom.pickle.xz", 21},
	{"memorymark analyze llama-3.1-8b --gpu rtx-4090 --lora 16 --quantize nf4-double --sequence 2048 --checkpointing", 19},
}

// columns is how wide the terminal is.
const columns = 92

func main() {
	binary := flag.String("memorymark", "build/memorymark", "the program")
	output := flag.String("o", "docs/images/terminal.svg", "the picture to write")
	flag.Parse()
	if err := record(*binary, *output); err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1)
	}
}

func record(binary, output string) error {
	var scenes []scene
	for _, q := range questions {
		answer, err := ask(binary, strings.Fields(q.command)[1:])
		if err != nil {
			return fmt.Errorf("%s: %w", q.command, err)
		}
		lines := strings.Split(strings.TrimRight(answer, "\n"), "\n")
		scenes = append(scenes, scene{q.command, lines[:min(q.lines, len(lines))]})
	}
	return os.WriteFile(output, []byte(draw(scenes)), 0o644)
}

// ask runs the program as in a terminal with colours.
func ask(binary string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, binary, args...)
	c.Env = append(os.Environ(), "CLICOLOR_FORCE=1", "TERM=xterm-256color", fmt.Sprintf("COLUMNS=%d", columns))
	c.Stderr = os.Stderr
	out, err := c.Output()
	return string(out), err
}
