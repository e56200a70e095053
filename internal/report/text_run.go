package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
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
	if s.Failure != nil && !named(s) {
		fmt.Fprintf(&b, "  the command %v\n", s.Failure)
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

// named reports whether a process of the list says how the command ended.
func named(s *phantom.Summary) bool {
	return slices.ContainsFunc(s.Processes, func(p phantom.Process) bool { return p.Failure != nil && !p.Failure.LeftRunning })
}

func writeProcess(b *strings.Builder, s *phantom.Summary, p *phantom.Process) {
	peak, least := p.Peak(), ""
	if p.Sampled {
		least = "at least "
	}
	fmt.Fprintf(b, "  %s: peak %s%v allocated, %v reserved", processName(p), least, peak.Allocated, peak.Reserved)
	if p.Steps > 0 {
		fmt.Fprintf(b, " over %s", plural(int(p.Steps), "optimizer step"))
	}
	fmt.Fprintf(b, "%s\n", verdictOf(s, p))
	dead := p.Failure != nil && p.Fits == nil // else memory is why, which is said below
	if dead {
		fmt.Fprintf(b, "    %v\n", p.Failure)
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
	if p.Values == phantom.Computed {
		b.WriteString("    values were computed on the CPU" + because(s.WhyComputed) + "\n")
	}
	switch {
	case !dead || p.Failure.Interrupted:
	case len(p.Assumed) > 0:
		b.WriteString("    before that it read values that no kernel had computed, which may be why:\n")
	default:
		b.WriteString("    before that it read no value that was made up\n")
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

// verdictOf says whether a process fits, or why that is not known.
func verdictOf(s *phantom.Summary, p *phantom.Process) string {
	switch {
	case p.Fits != nil && !*p.Fits:
		return ": does not fit"
	case p.Fits != nil && len(p.OOMs) > 0:
		return fmt.Sprintf(": fits, after %s that it caught", plural(len(p.OOMs), "out-of-memory error"))
	case p.Fits != nil:
		return fmt.Sprintf(": fits, %v left", max(s.Limit-p.Peak().Reserved, bytesize.Bytes(0)))
	case p.Failure != nil && p.Failure.Interrupted:
		return " until it was interrupted; whether it fits is not known"
	case p.Failure != nil:
		return " until it failed; whether it fits is not known"
	case len(p.OOMs) > 0:
		return "; it caught an out-of-memory error and finished no step after that, so whether it fits is not known"
	default:
		return "; the command failed, so whether it fits is not known"
	}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ", because " + why + " in a first run"
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
