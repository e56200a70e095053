package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/emulate"
	"memorymark/internal/steptime"
)

// Limits of what is shown of a run: the rest is in its JSON.
const (
	maxProcesses   = 8
	maxAssumptions = 5
)

// WriteRun writes the memory of a command on an emulated GPU.
func WriteRun(w io.Writer, s *emulate.Summary) error {
	var b strings.Builder
	b.WriteString("\n" + runHeading(s) + "\n")
	if s.Stopped {
		fmt.Fprintf(&b, "  stopped after %s\n", seconds(s.Seconds))
	}
	if s.Serving != nil {
		writeServing(&b, s.Serving)
	}
	switch {
	case len(s.Processes) > 0:
	case s.Failure != nil && s.Failure.Signal != "" && s.Unable == "": // it said nothing of itself
		b.WriteString("  no process was seen to use the GPU before the command ended\n")
	case s.Unable != "":
		fmt.Fprintf(&b, "  no process used the GPU: %s\n", s.Unable)
	default:
		b.WriteString("  no process used the GPU through PyTorch\n")
	}
	if s.Failure != nil && !named(s) {
		fmt.Fprintf(&b, "  the command %s\n", endedText(s.Failure))
	}
	for i, p := range s.Processes {
		if i == maxProcesses {
			fmt.Fprintf(&b, "  and %d smaller processes\n", len(s.Processes)-i)
			break
		}
		writeProcess(&b, s, &p)
	}
	for i := range s.Together {
		writeTogether(&b, s, &s.Together[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTogether says who held how much of a card when its processes held most.
func writeTogether(b *strings.Builder, s *emulate.Summary, t *emulate.Together) {
	gpu := "the GPU"
	if s.GPUs > 1 {
		gpu = fmt.Sprintf("GPU %d", t.Device)
	}
	fmt.Fprintf(b, "  together on %s: at most %v with contexts, held by\n", gpu, t.Bytes)
	for i, h := range t.Held {
		if i == maxProcesses {
			fmt.Fprintf(b, "    and %s with less\n", plural(len(t.Held)-i, "process", "processes"))
			break
		}
		fmt.Fprintf(b, "    %10v  %s\n", h.Bytes, holderName(s, h.PID))
	}
}

// holderName is a process's name with its number, since programs often start themselves again.
func holderName(s *emulate.Summary, pid int) string {
	for i := range s.Processes {
		if p := &s.Processes[i]; p.PID == pid && len(p.Command) > 0 {
			return fmt.Sprintf("%s (process %d)", processName(p), pid)
		}
	}
	return fmt.Sprintf("process %d", pid)
}

// endedText is how a command ended, as a sentence continues.
func endedText(f *emulate.Failure) string {
	text := f.String()
	if strings.HasPrefix(text, "ended") {
		return text
	}
	return "was " + text
}

func runHeading(s *emulate.Summary) string {
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

// named reports whether a listed process says how the command ended.
func named(s *emulate.Summary) bool {
	return slices.ContainsFunc(s.Processes, func(p emulate.Process) bool { return p.Failure != nil && !p.Failure.LeftRunning })
}

func writeProcess(b *strings.Builder, s *emulate.Summary, p *emulate.Process) {
	peak, least := p.Peak(), ""
	if p.Sampled {
		least = "at least "
	}
	fmt.Fprintf(b, "  %s: peak %s%v allocated, %v reserved", processName(p), least, peak.Allocated, peak.Reserved)
	if p.Steps > 0 {
		fmt.Fprintf(b, " over %s", plural(int(p.Steps), "optimizer step"))
	}
	fmt.Fprintf(b, "%s\n", verdictOf(s, p))
	dead := p.Failure != nil && p.Fits == nil // otherwise the reason is memory, reported below
	if dead {
		fmt.Fprintf(b, "    %v\n", p.Failure)
	}
	if s.Serving == nil { // of a server, what it is says more
		writePhases(b, p)
	}
	writeElsewhere(b, p)
	if p.StepSeconds > 0 {
		fmt.Fprintf(b, "    about %s a step on such a card (%s)\n", seconds(p.StepSeconds), steptime.Stated)
	}
	if p.Late > 0 {
		fmt.Fprintf(b, "    %v to %v reserved on a real card: NCCL still held DDP's first buckets when they were rebuilt in 17 of 77 processes on an H200\n", peak.Reserved, peak.Reserved+p.Late)
	}
	for _, o := range p.OOMs {
		fmt.Fprintf(b, "    out of memory in step %d at %s: %v wanted, %v free\n", o.Step, o.Where, o.Requested, o.Free)
	}
	if p.Values == emulate.Computed {
		b.WriteString("    values were computed on the CPU" + because(s.WhyComputed) + "\n")
	}
	switch {
	case !dead || p.Failure.Interrupted:
	case len(p.Assumed) > 0:
		b.WriteString("    before that it read values that no kernel had computed, which may be why:\n")
	default:
		b.WriteString("    before that it read no value that was made up\n")
	}
	assumed := p.Assumed
	if s.Serving != nil && s.Serving.Starts { // its answers are not looked at
		assumed = nil
	}
	for i, a := range assumed {
		if i == maxAssumptions {
			fmt.Fprintf(b, "    and %s\n", plural(len(assumed)-i, "more place"))
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

// writePhases says where a process took most, and what each of its phases took.
func writePhases(b *strings.Builder, p *emulate.Process) {
	if worst := p.Worst(); worst != nil && worst.Where != "" {
		fmt.Fprintf(b, "    the peak was %s\n", whereText(worst))
	}
	if len(p.Phases) > 1 {
		writePhaseTable(b, p.Phases)
	}
}

// writeElsewhere says what a process took outside PyTorch's allocator.
func writeElsewhere(b *strings.Builder, p *emulate.Process) {
	if p.Host.Resident > 0 {
		fmt.Fprintf(b, "    host memory: %v at its peak, %v pinned\n", p.Host.Resident, p.Host.Pinned)
	}
	if len(p.Devices) > 0 {
		fmt.Fprintf(b, "    outside PyTorch: %v of the GPU for the CUDA context, kernels and libraries (%s)\n", p.Outside.Bytes, sourceText(&p.Outside))
	}
}

func whereText(ph *emulate.Phase) string {
	if ph.Step > 0 {
		return fmt.Sprintf("in step %d, at %s", ph.Step, ph.Where)
	}
	return "at " + ph.Where
}

func sourceText(o *emulate.Outside) string {
	if o.Estimated {
		return "estimated; --json has the source"
	}
	return "measured; --json has the source"
}

func writePhaseTable(b *strings.Builder, phases []emulate.Phase) {
	t := table{columns: []column{{title: "PHASE"}, {title: "ALLOCATED", right: true}, {title: "RESERVED", right: true}, {title: "HIGHEST"}}}
	for i := range phases {
		ph := &phases[i]
		where := ""
		if ph.Where != "" {
			where = whereText(ph)
		}
		t.rows = append(t.rows, row{cells: []string{ph.Name, ph.Allocated.String(), ph.Reserved.String(), where}})
	}
	var text strings.Builder
	t.write(&text, maxText)
	for line := range strings.Lines(style.ReplaceAllString(text.String(), "")) {
		b.WriteString("  " + line)
	}
}

// verdictOf says whether a process fits, or why that is not known.
func verdictOf(s *emulate.Summary, p *emulate.Process) string {
	switch {
	case p.Fits != nil && !*p.Fits:
		return ": does not fit"
	case p.Fits != nil && len(p.OOMs) > 0:
		return fmt.Sprintf(": fits, after %s that it caught", plural(len(p.OOMs), "out-of-memory error"))
	case p.Fits != nil && len(s.Together) > 0:
		return ": fits"
	case p.Fits != nil && s.Stopped:
		return fmt.Sprintf(": fits so far, %v left", max(s.Limit-p.Peak().Reserved, bytesize.Bytes(0)))
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
func processName(p *emulate.Process) string {
	name := fmt.Sprintf("process %d", p.PID)
	if len(p.Command) > 0 && p.Command[0] != "" {
		name = filepath.Base(p.Command[0])
	}
	if p.Rank != "" {
		name += " rank " + p.Rank
	}
	return name
}
