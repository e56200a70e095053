package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"memorymark/internal/recording"
	"memorymark/internal/snapshot"
)

// openSnapshot reads a snapshot from a file, or from stdin if the path is "-",
// and shows how far it has come.
func (e *env) openSnapshot(ctx context.Context, path string) (*snapshot.Snapshot, error) {
	r, size, err := e.open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	name := path
	if path == "-" {
		name = "standard input"
	}
	bar := e.newProgress(ctx, r, "reading "+name, size)
	defer bar.clear()
	s, err := snapshot.Read(bar, snapshot.Limits{})
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case bar.err != nil:
		return nil, fmt.Errorf("read %s: %w", path, bar.err)
	default:
		return nil, badInput("memorymark snapshot --help shows how to record one", "%s: %w", path, err)
	}
}

// open opens a file and returns its size, 0 if it has none to tell.
func (e *env) open(path string) (io.ReadCloser, int64, error) {
	if path == "-" {
		return io.NopCloser(e.stdin), 0, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, badInput("check the path, or give - to read from standard input", "read %s: no such file", path)
	}
	if err != nil {
		return nil, 0, badInput("", "read %s: %w", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	if info.IsDir() {
		f.Close()
		return nil, 0, badInput("give the snapshot file in it", "read %s: is a directory", path)
	}
	return f, info.Size(), nil
}

// addDeviceFlag adds --device to a command that looks at one device.
func addDeviceFlag(c *cobra.Command, device *int) {
	c.Flags().IntVar(device, "device", recording.BusiestDevice, "number `N` of the device to look at (default: the one with the most events)")
	c.Flags().Lookup("device").DefValue = "0" // keeps the -1 out of --help
}

// openRecording reads a snapshot and opens one device of it for questions.
func (e *env) openRecording(ctx context.Context, path string, device int) (*recording.Recording, error) {
	s, err := e.openSnapshot(ctx, path)
	if err != nil {
		return nil, err
	}
	t, err := recording.Choose(s, device)
	var missing *recording.NoDeviceError
	switch {
	case errors.As(err, &missing):
		return nil, badUsage("", "--device: %s: %w", path, err)
	case err != nil:
		return nil, badInput("call torch.cuda.memory._record_memory_history() before the code in question", "%s: %w", path, err)
	}
	return recording.New(t), nil
}

// badMoment turns what is wrong with --at into an error about the command line.
func badMoment(path string, err error) error {
	var moment *recording.MomentError
	if !errors.As(err, &moment) {
		return err
	}
	hint := ""
	if moment.At == "oom" {
		hint = "use --at peak"
	}
	return badUsage(hint, "%s: --at %w", path, err)
}
