package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"memorymark/internal/bytesize"
	"memorymark/internal/engine"
	"memorymark/internal/gpu"
	"memorymark/internal/job"
	"memorymark/internal/measure"
	"memorymark/internal/sandbox"
	"memorymark/internal/worker"
)

// slotFlags say what a worker measures on.
type slotFlags struct {
	cards  []string
	device string
	python string
	probe  time.Duration // how long one may take
}

func (f *slotFlags) addTo(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.cards, "card", nil, "measure as this GPU, an `ID` from memorymark gpus; may be repeated (default: the GPUs that PyTorch finds)")
	flags.StringVar(&f.device, "device", "", "`device` to measure on with --card: cuda:1, mps or cpu (default: the first GPUs)")
	flags.StringVar(&f.python, "python", "", "`Python` that has PyTorch (default: $MEMORYMARK_PYTHON, the virtual environment, python3)")
	flags.DurationVar(&f.probe, "timeout", measure.DefaultTimeout, "`time` after which a probe is killed")
}

// here reports whether there is something to measure on: a card that was
// named, or one of this machine.
func (f *slotFlags) here(ctx context.Context) bool {
	_, ok := measure.CardName(ctx)
	return ok || len(f.cards) > 0
}

// slots are the cards of this machine, as PyTorch finds them, or those that
// were named.
func (f *slotFlags) slots(ctx context.Context, upload *worker.Client) ([]worker.Slot, error) {
	python, err := measure.FindPython(f.python, os.Getenv)
	if err != nil {
		return nil, badInput("memorymark doctor says what is missing", "%w", err)
	}
	o := engine.RunnerOptions{Python: python.Path, Timeout: f.probe}
	if upload != nil {
		o.Upload = upload.Snapshot
	}
	if len(f.cards) > 0 {
		return f.namedSlots(o)
	}
	if f.device != "" {
		return nil, badUsage("name the GPU that it stands for, such as --card a10", "--device needs --card")
	}
	found, err := measure.Inspect(ctx, python)
	if err != nil {
		return nil, badInput("memorymark doctor says what is missing", "%w", err)
	}
	var slots []worker.Slot
	for i, c := range found.Cards {
		card, err := gpu.Find(c.Name)
		if err != nil {
			return nil, badInput("name the most similar GPU, such as --card a10", "%w", err)
		}
		slots = append(slots, newSlot(card, o, fmt.Sprintf("cuda:%d", i)))
	}
	if _, isThere := measure.CardName(ctx); len(slots) == 0 && !isThere {
		emulator, err := f.emulator(ctx)
		if err == nil {
			return []worker.Slot{emulator.slot()}, nil
		}
		return nil, badInput(fixOf(err), "this machine can neither measure nor emulate: %w", err)
	}
	if len(slots) == 0 {
		reason := cmp.Or(found.CUDAError, found.TorchError, "PyTorch finds no GPU")
		return nil, badInput("memorymark doctor says what is missing", "this machine cannot measure: %s", reason)
	}
	return slots, nil
}

// namedSlots are the cards that the user named.
func (f *slotFlags) namedSlots(o engine.RunnerOptions) ([]worker.Slot, error) {
	if f.device != "" && len(f.cards) > 1 {
		return nil, badUsage("start a worker for each", "--device is for one --card")
	}
	var slots []worker.Slot
	for i, name := range f.cards {
		card, err := gpu.Find(name)
		if err != nil {
			return nil, badUsage("memorymark gpus lists them", "--card: %w", err)
		}
		slots = append(slots, newSlot(card, o, cmp.Or(f.device, fmt.Sprintf("cuda:%d", i))))
	}
	return slots, nil
}

// newSlot is a card whose orders are answered on a device.
func newSlot(card *gpu.Card, o engine.RunnerOptions, device string) worker.Slot {
	o.Device = device
	return worker.Slot{Card: job.Card{ID: card.ID, Name: card.Name}, Run: engine.NewRunner(o).RunOrder}
}

// emulator runs steps on cards that are not there, with this machine's PyTorch.
type emulator struct {
	*engine.Runner
	with measure.Versions
}

func (f *slotFlags) emulator(ctx context.Context) (*emulator, error) {
	python, err := measure.FindPython(f.python, os.Getenv)
	if err != nil {
		return nil, err
	}
	with, err := measure.Emulator(ctx, python)
	if err != nil {
		return nil, err
	}
	return &emulator{engine.NewRunner(engine.RunnerOptions{Python: python.Path, Timeout: f.probe, EmulationMemory: emulationMemory()}), with}, nil
}

// emulationMemory is how much of this machine's memory an emulated model may hold, which
// comes from anyone who may ask: as much as code, if that leaves enough for others.
func emulationMemory() int64 {
	memory := int64(16 * bytesize.GiB)
	if machine := sandbox.MachineMemory(); machine > 0 {
		memory = min(memory, machine/4*3)
	}
	return memory
}

// slot takes jobs for any card, which it emulates: this machine needs none.
func (e *emulator) slot() worker.Slot {
	name := "any card, emulated with PyTorch " + e.with.Torch
	if e.with.Transformers != "" {
		name += " and transformers " + e.with.Transformers
	}
	return worker.Slot{Card: job.Card{ID: engine.EmulationQueue, Name: name}, Run: e.RunOrder}
}

// codeSlot takes jobs that carry code, which runs in a sandbox. It returns why
// there can be none on this machine.
func (e *emulator) codeSlot(ctx context.Context, python measure.Python, memory int64) (worker.Slot, error) {
	trial, err := measure.NewConfinement(memory)
	if err != nil {
		return worker.Slot{}, err
	}
	defer func() { _ = trial.Remove() }() // what is left in a temporary folder is no reason to end
	if err := trial.Check(ctx, python); err != nil {
		return worker.Slot{}, err
	}
	run := engine.NewRunner(engine.RunnerOptions{Python: python.Path, Timeout: e.Timeout, CodeMemory: memory}).RunOrder
	return worker.Slot{Card: job.Card{ID: engine.CodeQueue, Name: "your own code, in a sandbox, on any card, emulated with PyTorch " + e.with.Torch}, Run: run}, nil
}

// predictionTime is more than a predicted analysis takes.
const predictionTime = 10 * time.Second

// predictionSlots are a worker that needs no card: it predicts, on all cores.
func predictionSlots() []worker.Slot {
	run := engine.NewRunner(engine.RunnerOptions{}).RunOrder
	slots := make([]worker.Slot, runtime.GOMAXPROCS(0))
	for i := range slots {
		slots[i] = worker.Slot{Card: job.Card{ID: "cpu", Name: "predictions"}, Run: run}
	}
	return slots
}
