package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"memorymark/internal/emulate"
)

// program is one of programs.py, and what must come of it on the emulated GPU.
type program struct {
	name  string
	steps int64 // of its optimizer
	oom   bool  // it runs out of memory on the way
}

var programs = []program{
	{name: "gpt2", steps: 3},
	{name: "bert", steps: 3},
	{name: "checkpointed", steps: 3},
	{name: "convolutions", steps: 6},
	{name: "lstm", steps: 3},
	{name: "encoder", steps: 3},
	{name: "expandable", steps: 3},
	{name: "ddp", steps: 3},
	{name: "fsdp2", steps: 3},
	{name: "out_of_memory", steps: 3, oom: true},
	{name: "fourier", steps: 3},
	{name: "linear_algebra"},
	{name: "sparse"},
	{name: "graphed", steps: 3},
	{name: "graph"},
}

// refused is what one of them needs and the emulated GPU does not do.
const refused = "cudaIpcOpenMemHandle"

var notEmulated = regexp.MustCompile(`(?m)^memorymark: (\w+) is not emulated`)

// tryPrograms runs all programs and returns what came of each, nil if it
// answered, and what they took.
func (t *trial) tryPrograms(ctx context.Context, python string) (map[string]error, map[string]*emulate.Process, error) {
	summary := filepath.Join(t.work, "summary.json")
	args := []string{"run", "--gpu", "h200", "--gpus", "2", "--limit", "1GiB", "--summary", summary, "--snapshot", filepath.Join(t.work, "snapshot.pickle"), "--", python, t.programs}
	for _, p := range programs {
		args = append(args, p.name)
	}
	cmd := exec.CommandContext(ctx, t.memorymark, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, tail(said.Bytes()))
	}
	processes, err := readSummary(summary)
	if err != nil {
		return nil, nil, err
	}
	results := map[string]error{}
	for _, p := range programs {
		if results[p.name] = p.check(string(out), processes[p.name]); results[p.name] == nil {
			results[p.name] = output(exec.CommandContext(ctx, t.memorymark, "snapshot", "info", processes[p.name].Snapshot))
		}
	}
	if err := checkRefused(said.String()); err != nil {
		results["graph"] = err
	}
	for _, err := range results {
		if err != nil {
			fmt.Printf("%s\n", said.Bytes()) // it says why
			break
		}
	}
	return results, processes, nil
}

// readSummary returns what each program took, by its name.
func readSummary(name string) (map[string]*emulate.Process, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var s emulate.Summary
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	out := map[string]*emulate.Process{}
	for i, p := range s.Processes {
		if len(p.Command) == 2 {
			out[p.Command[1]] = &s.Processes[i]
		}
	}
	return out, nil
}

// check holds a program's exit status and what it took to what must be.
func (p *program) check(statuses string, took *emulate.Process) error {
	switch {
	case !strings.Contains("\n"+statuses, "\n"+p.name+" 0\n"):
		return errors.New("it failed")
	case took == nil:
		return errors.New("it did not use the GPU")
	case took.Steps != p.steps:
		return fmt.Errorf("%d optimizer steps were counted instead of %d", took.Steps, p.steps)
	case p.oom != (len(took.OOMs) > 0):
		return fmt.Errorf("it ran out of memory %d times", len(took.OOMs))
	case p.steps > 0 && took.Peak().Allocated <= 0:
		return errors.New("it took no memory")
	default:
		return nil
	}
}

// checkRefused looks for entry points that programs needed and that are not
// emulated: the one that must be refused says its name, and no other does.
func checkRefused(said string) error {
	named := false
	for _, found := range notEmulated.FindAllStringSubmatch(said, -1) {
		if found[1] != refused {
			return fmt.Errorf("%s is needed and not emulated", found[1])
		}
		named = true
	}
	if !named {
		return fmt.Errorf("%s did not say that it is not emulated", refused)
	}
	return nil
}
