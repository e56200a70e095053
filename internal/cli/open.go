package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/allocator"
	"memorymark/internal/snapshot"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
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
	c.Flags().IntVar(device, "device", mostEvents, "number `N` of the device to look at (default: the one with the most events)")
	c.Flags().Lookup("device").DefValue = "0" // keeps the -1 out of --help
}

// mostEvents stands for the device with the most events.
const mostEvents = -1

// readTrace reads a snapshot and returns one device of it.
func (e *env) readTrace(ctx context.Context, path string, device int) (*trace.Trace, error) {
	s, err := e.openSnapshot(ctx, path)
	if err != nil {
		return nil, err
	}
	var best *trace.Trace
	var known []string
	for _, t := range s.Devices {
		if isEmpty(t) {
			continue
		}
		known = append(known, strconv.Itoa(t.Device))
		if t.Device == device || device == mostEvents && (best == nil || len(t.Events) > len(best.Events)) {
			best = t
		}
	}
	switch {
	case best != nil:
		return best, nil
	case len(known) == 0:
		return nil, badInput("call torch.cuda.memory._record_memory_history() before the code in question",
			"%s: the snapshot is empty, nothing was recorded", path)
	default:
		return nil, badUsage("", "--device %d: %s has only %s", device, path, strings.Join(known, ", "))
	}
}

// isEmpty reports whether a snapshot says nothing of a device: it names all
// devices of the machine.
func isEmpty(t *trace.Trace) bool { return len(t.Events) == 0 && len(t.Final) == 0 }

// classified returns the allocations of a trace and what they are for.
func classified(t *trace.Trace) []trace.Lifetime {
	lifetimes := t.Lifetimes()
	t.Classify(lifetimes)
	return lifetimes
}

// replayed returns the simulation of a recording, or nil if it parts from the
// recording or the recording is not whole: then it proves nothing.
func replayed(t *trace.Trace) *allocator.Replay {
	r, err := allocator.NewReplay(t, 0)
	if err != nil || r.Recorded().Difference != nil {
		return nil
	}
	return r
}

// levels returns what was allocated and reserved after each event, as far as
// it is known.
func levels(t *trace.Trace) timeline.Levels {
	l := timeline.Levels{Reserved: timeline.Reserved(t)}
	if r := replayed(t); r != nil {
		l.Allocated = r.Recorded().Levels.Allocated
	}
	return l
}
