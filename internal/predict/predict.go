// Package predict says what the training steps of a workload take on a card. It
// runs the model on a symbolic PyTorch (package torch), and what that allocates
// and frees on a simulated allocator (package allocator).
//
// A question starts in one of four places:
//
//	Run         one process on one card: its peaks, breakdown, trace and time
//	Predict     the same as a Prediction, the answer that users get
//	NewBatches  a workload at many batches: the largest one that trains, how
//	            memory and speed grow
//	NewOutline  lower bounds for every batch without an allocator, and
//	            processes that serve many cards (Outline.OnCards), for planning
//
// All of them end in a Process: a program, which is what the Python process does,
// and the outcome of its allocations on a card. Package allocator has the types of
// an outcome.
package predict

import (
	"errors"
	"fmt"
	"runtime"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// Options say how a workload is run. The zero value is right for a prediction.
type Options struct {
	Budget *workbudget.Budget // nil is without bound
	// Steps is the number of steps; 0 is as many as it takes until the process has
	// settled. With it, a race between DDP and NCCL is simulated both ways (Late);
	// a given number of steps runs as it usually does.
	Steps int
	// Build makes the model, nil for models.New. With it, every pass of a step runs
	// instead of one that represents the others.
	Build Builder
}

// Builder makes the model of a configuration, as models.New does.
type Builder func(t *torch.Torch, c *hfconfig.Config, r models.Run) (*models.Model, error)

// Run runs steps of a workload on a card, under the workload's limit or the card's.
func Run(w *workload.Workload, card *gpu.Card, o Options) (*Process, error) {
	return newBatches(w, card, o).Process(w.Batch)
}

// Predict is the prediction of a workload on a card.
func Predict(w *workload.Workload, card *gpu.Card, o Options) (*Prediction, error) {
	b := newBatches(w, card, o)
	defer b.discard()
	p, err := b.Process(w.Batch)
	if err != nil {
		return nil, err
	}
	return p.Prediction()
}

// The versions whose memory is predicted unless a workload names others.
var (
	PyTorchVersion      = models.Reference.Torch.String()
	TransformersVersion = models.Reference.Transformers.String()
)

// ErrFault says that a prediction failed by no fault of the workload's.
var ErrFault = errors.New("this is a bug in MemoryMark; please report it")

// recoverError makes an error of a panic: that of a program that was interrupted,
// and of bugs, since one strange workload must not stop a server.
func recoverError(w *workload.Workload, err *error) {
	switch r := recover().(type) {
	case nil:
	case torch.Interruption:
		*err = r.Err
		if unused := new(torch.UnusedError); errors.As(r.Err, &unused) {
			*err = invalid.At("parallel", unused)
		}
	default:
		*err = fmt.Errorf("predict %s: %v; %w", w.Config.Architecture, r, ErrFault)
	}
}

// Limit is what the allocator may reserve: the workload's limit, or what the card
// has apart from the context.
func Limit(w *workload.Workload, card *gpu.Card) bytesize.Bytes {
	if limit := w.Limit(); limit > 0 {
		return limit
	}
	return card.Usable()
}

func deviceOf(c *gpu.Card) torch.Device {
	return torch.Device{
		SMs: c.SMs, ThreadsPerSM: c.ThreadsPerSM,
		Major: c.ComputeCapability.Major, Minor: c.ComputeCapability.Minor,
	}
}

// Device is what a program depends on of a card: it allocates the same memory on
// two cards of equal devices.
func Device(card *gpu.Card) any { return deviceOf(card) }

// maxConcurrentLayers is how many layers may be simulated at the same time: a process
// of a thousand takes half a gigabyte.
const maxConcurrentLayers = 500

// MaxConcurrent is how many predictions of a workload may run at the same time: as many as
// there are cores, and fewer of deep models, so that one question stays within a
// gigabyte on every machine. Recordings have every pass of a step, though one was
// simulated for all.
func MaxConcurrent(w *workload.Workload, recorded bool) int {
	layers := max(w.Config.Layers(), 1)
	if recorded {
		layers *= int64(max(w.Accumulate, 1))
	}
	if w.Varied() { // none of its steps repeats another
		layers *= drawnSteps / steps
	}
	return int(min(max(maxConcurrentLayers/layers, 1), int64(runtime.GOMAXPROCS(0))))
}
