package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/server"
	"memorymark/internal/worker"
)

// findEmulator looks for a PyTorch that can emulate cards, once. It is nil
// where that is not wanted.
type findEmulator func() (*emulator, error)

// emulation is what a server emulates cards with: analyses and predictions take
// turns on it.
func (f *serveFlags) emulation(ctx context.Context) findEmulator {
	if f.noMeasuring {
		return nil
	}
	return sync.OnceValues(func() (*emulator, error) { return f.emulator(ctx) })
}

// work takes analyses that are to be emulated, if this machine's Python has a
// PyTorch that can.
func (find findEmulator) work(ctx context.Context, opts server.Options) error {
	if find == nil {
		return nil
	}
	emulator, err := find()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the server ends before it has looked
	}
	if err != nil {
		opts.Log.Info("no card is emulated here", "reason", err)
		return nil
	}
	return work(ctx, opts, []worker.Slot{emulator.slot()}, 0)
}

// answer is how a server emulates predictions, nil if it does not.
func (find findEmulator) answer() server.Emulate {
	if find == nil {
		return nil
	}
	return func(ctx context.Context, q analysis.Request) (*analysis.Prediction, error) {
		emulator, err := find()
		if err != nil {
			return nil, cannotEmulate(err)
		}
		p, err := emulator.Emulate(ctx, q, nil, "")
		var unable *engine.UnableError
		if errors.As(err, &unable) {
			return nil, cannotEmulate(err)
		}
		return p, err
	}
}

// cannotEmulate adds what to do to the reason.
func cannotEmulate(err error) error {
	return &server.CannotEmulateError{Reason: fmt.Sprintf("%v (%s)", err, fixOf(err))}
}
