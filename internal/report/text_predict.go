package report

import (
	"fmt"
	"io"
	"strings"

	"memorymark/internal/analysis"
	"memorymark/internal/figure"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// PredictionText is the memory of a workload on a card, for people.
type PredictionText struct {
	*predict.Prediction
	Loops []predict.LoopPeak // peaks of other training loops, if known
}

// Write writes the prediction.
func (p PredictionText) Write(w io.Writer, width int) error {
	paragraph(w, width, p.title(), p.settings())
	versions := p.Workload.Libraries()
	paragraph(w, width, "", fmt.Sprintf("Predicted, for PyTorch %v and transformers %v, on %s of %v",
		versions.Torch, versions.Transformers, deviceText(p.Card.Name), p.GPUTotal))
	fmt.Fprintln(w)
	if p.Lengths != nil {
		writeRange(w, width, p.Lengths)
	} else {
		writeSteps(w, width, p.Steps)
	}
	writeBreakdown(w, width, p.PeakPhase, &p.Breakdown)
	if len(p.Modules) > 0 {
		fmt.Fprintf(w, "\n%s\n", heading("By module"))
		writeModules(w, width, p.Modules, p.Breakdown.Total)
	}
	if l := p.MemoryLine; l != nil {
		fmt.Fprintln(w)
		paragraph(w, width, "With the batch", fmt.Sprintf("from %d on, the peak is %v plus %v per sample", l.From, l.Fixed, l.PerSample))
	}
	p.writeVerdict(w, width)
	p.writeAccuracy(w, width)
	return nil
}

func (p PredictionText) title() string {
	name := p.Workload.Config.Architecture
	if m, err := workload.FindModel(p.Workload.Model); err == nil {
		name = m.Name
	}
	return fmt.Sprintf("%s, %s parameters", name, figure.Count(int(p.Parameters)))
}

// settings names the values that are not defaults.
func (p PredictionText) settings() string {
	x := p.Workload
	samples := fmt.Sprintf("batch %d × %d tokens", x.Batch, x.Sequence)
	if x.Varied() {
		samples = fmt.Sprintf("batch %d × up to %d tokens", x.Batch, x.Sequence)
	}
	if _, frames := x.Features(); frames > 0 {
		samples = fmt.Sprintf("batch %d × %d frames and %d tokens", x.Batch, frames, x.Sequence)
	}
	switch {
	case x.Program != nil:
		samples = fmt.Sprintf("batch %d", x.Batch)
	case x.TakesImages():
		samples = fmt.Sprintf("batch %d × %d² pixels", x.Batch, x.Image)
	}
	parts := []string{samples, string(x.Precision), string(x.Optimizer)}
	if x.Program != nil {
		parts = parts[:2] // its optimizer may be its own
	} else if x.OptimizerImpl != workload.Foreach && x.Optimizer != workload.NoOptimizer {
		parts[2] += " (" + string(x.OptimizerImpl) + ")"
	}
	add := func(when bool, text string) {
		if when {
			parts = append(parts, text)
		}
	}
	add(x.Phase != workload.Train, string(x.Phase)+" only")
	add(x.Loss != workload.Labels, "mean of the logits")
	add(x.Attention != workload.SDPA, string(x.Attention)+" attention")
	add(x.Packing, "packed")
	add(x.AttentionMask != workload.NoMask && !x.Varied(), "mask of "+string(x.AttentionMask))
	add(x.Checkpointing, "checkpointing")
	add(x.ChannelsLast, "channels_last")
	add(x.Mode != workload.Training, "evaluation mode")
	add(x.Accumulate > 1, fmt.Sprintf("%d accumulated", x.Accumulate))
	add(x.ClipGradNorm, "clipping")
	add(x.Loop.Name != workload.PlainLoop, "in "+x.Loop.String())
	add(x.ExpandableSegments, "expandable segments")
	if x.Parallel != nil {
		parts = append(parts, "one GPU of "+x.Parallel.Text())
	}
	return strings.Join(parts, ", ")
}

func writeBreakdown(w io.Writer, width int, phase string, b *predict.Breakdown) {
	at := "At the peak"
	if phase != "" {
		at += ", in the " + predict.PhaseName(phase)
	}
	fmt.Fprintf(w, "\n%s\n", heading(at))
	t := table{columns: []column{{title: "SIZE", right: true}, {title: "SHARE", right: true}, {title: "WHAT"}}}
	for _, part := range b.Parts() {
		if part.Bytes == 0 {
			continue
		}
		t.rows = append(t.rows, row{
			cells: []string{part.Bytes.String(), percent(float64(part.Bytes) / float64(b.Total)), partText[part.Name]},
			color: categoryColor(partCategory[part.Name]),
		})
	}
	t.rows = append(t.rows, row{cells: []string{b.Total.String(), percent(1), "total"}})
	t.write(w, width)
}

// partText explains the parts of a breakdown.
var partText = map[string]string{
	"parameters": "parameters and buffers", "optimizer state": "optimizer state", "gradients": "gradients",
	"activations": "activations, kept for backward", "temporaries": "temporaries", "input": "the batch",
	"workspaces": "workspaces of libraries", "rounding": "rounding of the allocator",
	"fragmentation": "fragmentation: reserved and not allocated", "context": "CUDA context, outside the allocator",
}

// partCategory is the category that gives a part its colour.
var partCategory = map[string]string{
	"parameters": "parameter", "optimizer state": "optimizer_state", "gradients": "gradient", "activations": "activation",
	"temporaries": "temporary", "input": "input", "workspaces": "workspace",
}

func (p PredictionText) writeVerdict(w io.Writer, width int) {
	fmt.Fprintln(w)
	if oom := p.OutOfMemory; oom != nil {
		paragraph(w, width, verdictTitle(p.Verdict), oom.Reason())
	} else {
		writeLeft(w, width, p.Prediction, p.Limit+p.Breakdown.Context)
		p.writeSpeed(w, width)
	}
	if len(p.Loops) > 0 {
		paragraph(w, width, "Loop", p.loops())
	}
	if len(p.Ranks) > 0 {
		paragraph(w, width, "Ranks", ranksText(p.Ranks))
	}
	if l := p.Late; l != nil && l.PeakReserved() != p.PeakReserved() {
		paragraph(w, width, "Or", lateText(p))
	}
	for _, c := range p.Caveats {
		paragraph(w, width, "Card", c)
	}
}

// writeSpeed says how fast steps are, within which limits, and whether the card waits
// for Python.
func (p PredictionText) writeSpeed(w io.Writer, width int) {
	text := perSecond(analysis.Throughput{SamplesPerSecond: p.SamplesPerSecond, TokensPerSecond: p.TokensPerSecond}) + ", by a time model"
	if r := p.StepRange; r != nil && r.Low < r.High {
		text += fmt.Sprintf(": a step takes %s to %s (%s)", seconds(r.Low), seconds(r.High), p.StepCompared)
	}
	paragraph(w, width, "Speed", text)
	if l := p.Loader; l != nil {
		paragraph(w, width, "Loader", loaderText(l, p.StepSeconds))
	}
	if c := p.CPUBound; c != nil {
		paragraph(w, width, "CPU-bound", fmt.Sprintf("the card waits for Python, which launches %.0f kernels in a step; the card itself needs %s, to which CUDA graphs or torch.compile can come close", c.Launches, seconds(c.DeviceSeconds)))
	}
}

// loaderText says whether the card waits for samples.
func loaderText(l *predict.LoaderTime, step float64) string {
	if l.WaitingSeconds == 0 {
		return fmt.Sprintf("it has the samples of a step ready in %s, before the card needs them", seconds(l.Seconds))
	}
	return fmt.Sprintf("the card waits %s in a step for samples, which take %s; without that a step takes %s", seconds(l.WaitingSeconds), seconds(l.Seconds), seconds(step-l.WaitingSeconds))
}

// loops says which loop the answer is for, and the answers of others.
func (p PredictionText) loops() string {
	others := make([]string, len(p.Loops))
	for i, l := range p.Loops {
		others[i] = fmt.Sprintf("%v in %s", l.PeakReserved, l.Loop.Label())
	}
	return fmt.Sprintf("for %v, which reserves %v; it would be %s", p.Workload.Loop, p.PeakReserved(), list(others))
}

// ranksText says which ranks decide, and the memory of the others.
func ranksText(ranks []predict.Rank) string {
	name := func(r predict.Rank) string {
		if strings.ContainsAny(r.Ranks, "-,") {
			return "ranks " + r.Ranks
		}
		return "rank " + r.Ranks
	}
	var most string
	var others []string
	for _, r := range ranks {
		if r.Decides {
			most = fmt.Sprintf("%s reserved by %s", r.PeakReserved, name(r))
		} else {
			others = append(others, fmt.Sprintf("%v by %s", r.PeakReserved, name(r)))
		}
	}
	return fmt.Sprintf("their parts are uneven: at most %s, then %s", most, list(others))
}

// lateText describes the other outcome of the race for DDP's first buckets.
func lateText(p PredictionText) string {
	text := fmt.Sprintf("%v is reserved instead of %v if NCCL still holds DDP's first buckets when they are rebuilt, as in 17 of 77 processes on an H200",
		p.Late.PeakReserved(), p.PeakReserved())
	if !p.Late.Fits && p.PeakReserved() <= p.Limit {
		text += "; only then it does not fit"
	}
	return text
}

// perSecond formats speed, in samples and, for text, in tokens.
func perSecond(t analysis.Throughput) string {
	rate := func(x float64) string { return speeds([]float64{x}, func(x float64) float64 { return x })[0] }
	s := rate(t.SamplesPerSecond) + " samples a second"
	if t.TokensPerSecond > 0 {
		s += ", " + rate(t.TokensPerSecond) + " tokens a second"
	}
	return s
}

// writeAccuracy says by how much such predictions were off where they could be
// verified.
func (p PredictionText) writeAccuracy(w io.Writer, width int) {
	writeFaint(w, width, predict.StatedOf(p.Workload, p.Parameters, p.Card).OfPeaks())
}
