package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/phantom"
	"memorymark/internal/steptime"
)

// How much of a run is shown: the rest is in its JSON.
const (
	maxProcesses   = 8
	maxAssumptions = 5
)

// WriteRun writes what a command took on an emulated GPU.
func WriteRun(w io.Writer, s *phantom.Summary) error {
	var b strings.Builder
	b.WriteString("\n" + runHeading(s) + "\n")
	if len(s.Processes) == 0 {
		b.WriteString("  no process used the GPU through PyTorch\n")
	}
	for i, p := range s.Processes {
		if i == maxProcesses {
			fmt.Fprintf(&b, "  and %d smaller processes\n", len(s.Processes)-i)
			break
		}
		writeProcess(&b, s, &p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func runHeading(s *phantom.Summary) string {
	cards := s.GPUName
	if s.GPUs > 1 {
		cards = fmt.Sprintf("%d × %s", s.GPUs, s.GPUName)
	}
	torch := ""
	if len(s.Processes) > 0 {
		torch = ", PyTorch " + s.Processes[0].Torch
	}
	return fmt.Sprintf("emulated: %s with %v available%s", cards, s.Limit, torch)
}

func writeProcess(b *strings.Builder, s *phantom.Summary, p *phantom.Process) {
	peak := p.Peak()
	fmt.Fprintf(b, "  %s: peak %v allocated, %v reserved", processName(p), peak.Allocated, peak.Reserved)
	if p.Steps > 0 {
		fmt.Fprintf(b, " over %s", plural(int(p.Steps), "optimizer step"))
	}
	switch {
	case len(p.OOMs) > 0:
		b.WriteString(": does not fit\n")
	default:
		fmt.Fprintf(b, ": fits, %v left\n", max(s.Limit-peak.Reserved, bytesize.Bytes(0)))
	}
	if p.StepSeconds > 0 {
		fmt.Fprintf(b, "    about %s a step on such a card (%s)\n", seconds(p.StepSeconds), steptime.Stated)
	}
	if p.Late > 0 {
		fmt.Fprintf(b, "    %v to %v reserved on a real card: NCCL still held DDP's first buckets when they were rebuilt in 17 of 77 processes on an H200\n", peak.Reserved, peak.Reserved+p.Late)
	}
	for _, o := range p.OOMs {
		fmt.Fprintf(b, "    out of memory in step %d at %s: %v wanted, %v free\n", o.Step, o.Where, o.Requested, o.Free)
	}
	for i, a := range p.Assumed {
		if i == maxAssumptions {
			fmt.Fprintf(b, "    and %s\n", plural(len(p.Assumed)-i, "more place"))
			break
		}
		fmt.Fprintf(b, "    made up %s\n", assumptionText(a))
	}
	for _, n := range p.Notes {
		fmt.Fprintf(b, "    %s\n", n)
	}
	if p.Snapshot != "" {
		fmt.Fprintf(b, "    snapshot: %s\n", p.Snapshot)
	}
}

// processName is short: the program, and which of its processes.
func processName(p *phantom.Process) string {
	name := fmt.Sprintf("process %d", p.PID)
	if len(p.Command) > 0 && p.Command[0] != "" {
		name = filepath.Base(p.Command[0])
	}
	if p.Rank != "" {
		name += " rank " + p.Rank
	}
	return name
}
