package study

import (
	"fmt"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/predict"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Activation derives what one batch leaves on the card: the residual stream,
// the attention scores with it, every tensor that a block makes, and all of
// it times the layers against the peak of a training step.
type Activation struct {
	Model    string       `json:"model"`
	Symbols  []Symbol     `json:"symbols"`
	Residual Product      `json:"residual_stream"`
	Scores   Product      `json:"attention_scores"`
	Block    []BlockValue `json:"block"`
	// Saved and Freed are the block's totals; the residual stream it hands on
	// is among what is saved.
	Saved bytesize.Bytes `json:"block_saved"`
	Freed bytesize.Bytes `json:"block_freed"`
	// Blocks is Saved times the layers; Outside is what embedding, rotary
	// positions, final norm, head and loss keep; Kept is both.
	Blocks  bytesize.Bytes `json:"all_blocks_saved"`
	Outside bytesize.Bytes `json:"outside_blocks_saved"`
	Kept    bytesize.Bytes `json:"kept_for_backward"`
	// BackwardPeak is the most that forward and backward have allocated, Peak
	// the most of the whole step, and PeakPhase where that is.
	BackwardPeak bytesize.Bytes  `json:"forward_backward_peak"`
	Peak         bytesize.Bytes  `json:"peak"`
	PeakPhase    string          `json:"peak_phase"`
	Engine       evidence.Engine `json:"engine"`
	GPU          string          `json:"gpu"`
}

// Symbol is a size that shapes are written in.
type Symbol struct {
	Symbol string `json:"symbol"`
	Name   string `json:"name"`
	Value  int64  `json:"value"`
}

// Product is an amount of memory as a product of sizes.
type Product struct {
	Symbols string         `json:"symbols"` // "B × S × D × 4 bytes"
	Numbers string         `json:"numbers"` // "4 × 512 × 2560 × 4 bytes"
	Bytes   bytesize.Bytes `json:"bytes"`
}

// BlockValue is a tensor that a block makes in forward.
type BlockValue struct {
	What   string         `json:"what"`
	Shape  string         `json:"shape"`   // in symbols
	Sizes  []int64        `json:"numbers"` // the same in numbers
	Bytes  bytesize.Bytes `json:"bytes"`
	Saved  bool           `json:"saved"` // for backward; else freed before forward ends
	Reason string         `json:"reason,omitempty"`
}

// elementBytes is the size of a float32: the derivation is of full precision.
const elementBytes = 4

// NewActivation derives the activations of a plain language model that trains
// in fp32, within an work.
func NewActivation(w *workload.Workload, card *gpu.Card, e *workbudget.Budget) (*Activation, error) {
	lm, err := models.ReadLM(w.Config)
	if err != nil || w.Config.Architecture != "TransformerLM" {
		return nil, fmt.Errorf("%s is not a plain language model; its activations are not derived", w.Name())
	}
	if w.Parallel != nil {
		return nil, fmt.Errorf("the activations of %s are derived on one GPU; leave out parallel", w.Name())
	}
	w = trainingInFP32(w)
	s, err := predict.Run(w, card, predict.Options{Budget: e, Steps: 2})
	if err != nil {
		return nil, err
	}
	if !s.Fits() {
		return nil, fmt.Errorf("%s takes more than 1 PiB of memory with batch %d of %d tokens; use a smaller batch or context", w.Name(), w.Batch, w.Sequence)
	}
	a := &Activation{Model: w.Name(), Engine: evidence.Predicted, GPU: card.Name}
	sizes := a.name(lm, w)
	a.Residual = sizes.product("B", "S", "D")
	a.Scores = sizes.product("B", "H", "S", "S")
	t, err := s.TraceAfter(1)
	if err != nil {
		return nil, err
	}
	end := lastForwardEvent(t)
	if err := a.addBlock(sizes, blockTensors(t, end)); err != nil {
		return nil, err
	}
	a.Blocks = a.Saved * bytesize.Bytes(lm.Layers)
	a.Kept = keptAt(t, end)
	a.Outside = a.Kept - a.Blocks
	phases, err := s.PhasesAfter(1)
	if err != nil {
		return nil, err
	}
	for _, p := range phases {
		if p.Name != trace.OptimizerMark {
			a.BackwardPeak = max(a.BackwardPeak, p.PeakAllocated)
		}
		if p.PeakAllocated > a.Peak {
			a.Peak, a.PeakPhase = p.PeakAllocated, p.Name
		}
	}
	return a, nil
}

// trainingInFP32 is the workload that is derived, with memory for it.
func trainingInFP32(w *workload.Workload) *workload.Workload {
	at := *w
	at.Precision, at.Phase, at.Checkpointing, at.Accumulate = workload.FP32, workload.Train, false, 1
	at.LimitGiB = 1 << 20
	return &at
}

// symbols are the values of the symbols.
type symbols map[string]int64

func (a *Activation) name(lm *models.LMConfig, w *workload.Workload) symbols {
	a.Symbols = []Symbol{
		{"B", "batch", w.Batch},
		{"S", "context length", w.Sequence},
		{"D", "d_model", lm.Width},
		{"F", "d_ff", lm.Inner},
		{"H", "heads", lm.Heads},
		{"d", "size of a head, D / H", lm.Width / lm.Heads},
		{"L", "layers", lm.Layers},
	}
	out := make(symbols)
	for _, s := range a.Symbols {
		out[s.Symbol] = s.Value
	}
	return out
}

// of is the value of a symbol, of a half of one, or of a number.
func (s symbols) of(name string) int64 {
	if half, ok := strings.CutSuffix(name, "/2"); ok {
		return s[half] / 2
	}
	if name == "1" {
		return 1
	}
	return s[name]
}

func (s symbols) product(names ...string) Product {
	bytes := int64(elementBytes)
	numbers := make([]string, len(names))
	for i, n := range names {
		bytes *= s.of(n)
		numbers[i] = fmt.Sprint(s.of(n))
	}
	return Product{
		Symbols: fmt.Sprintf("%s × %d bytes", strings.Join(names, " × "), elementBytes),
		Numbers: fmt.Sprintf("%s × %d bytes", strings.Join(numbers, " × "), elementBytes),
		Bytes:   bytesize.Bytes(bytes),
	}
}

// addBlock puts the names of blockValues on what the prediction allocates in a
// block, and fails where the two do not agree.
func (a *Activation) addBlock(sizes symbols, made []made) error {
	next := 0
	for _, v := range blockValues {
		p := sizes.product(v.shape...)
		if v.copied != nil && !v.copied(sizes) {
			continue
		}
		if next == len(made) || made[next].bytes != p.Bytes {
			return fmt.Errorf("derive activations: %s should be allocation %d of a block, with %v, and is not; this is a bug in MemoryMark; please report it",
				v.what, next+1, p.Bytes)
		}
		out := BlockValue{What: v.what, Shape: strings.Join(v.shape, " × "), Bytes: p.Bytes, Saved: made[next].saved, Sizes: []int64{}}
		for _, n := range v.shape {
			out.Sizes = append(out.Sizes, sizes.of(n))
		}
		if out.Saved {
			a.Saved += out.Bytes
			out.Reason = v.reason
		} else {
			a.Freed += out.Bytes
		}
		a.Block = append(a.Block, out)
		next++
	}
	if next < len(made) {
		return fmt.Errorf("derive activations: a block allocates %d tensors, %d are known; this is a bug in MemoryMark; please report it", len(made), next)
	}
	return nil
}

// made is an allocation of a block.
type made struct {
	bytes bytesize.Bytes
	saved bool
}

// blockTensors returns what the first block allocates in forward, in order.
func blockTensors(t *trace.Trace, end int) []made {
	var out []made
	for _, l := range t.Lifetimes() {
		if l.Alloc < 0 || l.Alloc > end {
			continue
		}
		if frames := t.Stacks.Frames(l.Stack); len(frames) > 0 && strings.HasPrefix(frames[0].Name+".", "blocks.0.") {
			out = append(out, made{bytesize.Bytes(l.Size), l.Freed > end})
		}
	}
	return out
}

// lastForwardEvent is the last event before the first backward: by then the
// loop has dropped the model's output, and only what backward needs is left.
func lastForwardEvent(t *trace.Trace) int {
	for _, m := range t.Marks {
		if m.Name == trace.BackwardMark {
			return m.Event - 1
		}
	}
	return -1
}

// keptAt adds up the activations that are live at an event.
func keptAt(t *trace.Trace, event int) bytesize.Bytes {
	var sum bytesize.Bytes
	for _, l := range trace.Live(t.Lifetimes(), event) {
		if l.For == trace.Activation {
			sum += bytesize.Bytes(l.Size)
		}
	}
	return sum
}
