// Package recording answers questions about one device of a snapshot: what was
// largest and when, whether it would have fitted elsewhere, what grew, what
// happened in which order. The command line and the server share it. Expensive
// results are computed once, when first needed.
package recording

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"memorymark/internal/allocator"
	"memorymark/internal/snapshot"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

// Recording is the history of one device. Its methods may be called
// concurrently.
type Recording struct {
	*trace.Trace
	lifetimes func() []trace.Lifetime
	replay    func() (*allocator.Replay, error)
	levels    func() timeline.Levels
	marks     func() []trace.Mark
}

// New wraps a trace, which must not change any more.
func New(t *trace.Trace) *Recording {
	r := &Recording{Trace: t}
	var allocated []int64 // after each event, once replay has run
	r.lifetimes = sync.OnceValue(func() []trace.Lifetime {
		lifetimes := t.Lifetimes()
		t.Classify(lifetimes)
		return lifetimes
	})
	r.replay = sync.OnceValues(func() (*allocator.Replay, error) {
		allocated = make([]int64, len(t.Events))
		return allocator.NewReplay(t, 0, allocator.Levels{Allocated: allocated})
	})
	r.levels = sync.OnceValue(func() timeline.Levels {
		if r.faithful() == nil {
			allocated = nil
		}
		return timeline.Levels{Allocated: allocated, Reserved: timeline.Reserved(t)}
	})
	r.marks = sync.OnceValue(t.PhaseMarks)
	return r
}

// The memory of a recording in addition to its trace, once everything was computed:
// lifetimes, levels, phases and the simulation's blocks, at the beginning, at
// the end and in between.
const (
	bytesPerEvent = 120
	bytesPerBlock = 256
)

// MaxEvents is how many events a snapshot may have so that its trace and what is asked of
// it take no more memory than that.
func MaxEvents(memory int64) int {
	return int(memory / (bytesPerEvent + int64(unsafe.Sizeof(trace.Event{}))))
}

// Memory estimates how many bytes a recording of the trace will hold.
func Memory(t *trace.Trace) int64 {
	blocks := len(t.Initial) + len(t.Final)
	for i := range t.Final {
		blocks += len(t.Final[i].Blocks)
	}
	return int64(len(t.Events))*bytesPerEvent + int64(blocks)*bytesPerBlock
}

// BusiestDevice selects the device with the most events.
const BusiestDevice = -1

// ErrEmpty says that nothing was recorded.
var ErrEmpty = errors.New("the snapshot is empty: nothing was recorded")

// NoDeviceError says that a snapshot has no data of a device.
type NoDeviceError struct {
	Device int
	Known  []int
}

func (e *NoDeviceError) Error() string {
	known := make([]string, len(e.Known))
	for i, n := range e.Known {
		known[i] = strconv.Itoa(n)
	}
	return fmt.Sprintf("there is no device %d, only %s", e.Device, strings.Join(known, ", "))
}

// Devices returns the devices with data. A snapshot lists all devices of the
// machine.
func Devices(s *snapshot.Snapshot) []*trace.Trace {
	return slices.DeleteFunc(slices.Clone(s.Devices), func(t *trace.Trace) bool {
		return len(t.Events) == 0 && len(t.Final) == 0
	})
}

// Choose returns a device of a snapshot.
func Choose(s *snapshot.Snapshot, device int) (*trace.Trace, error) {
	var best *trace.Trace
	var known []int
	for _, t := range Devices(s) {
		known = append(known, t.Device)
		if t.Device == device || device == BusiestDevice && (best == nil || len(t.Events) > len(best.Events)) {
			best = t
		}
	}
	switch {
	case best != nil:
		return best, nil
	case len(known) == 0:
		return nil, ErrEmpty
	default:
		return nil, &NoDeviceError{device, known}
	}
}

// The origins of a recording, as far as they can be seen.
const (
	Recorded  = "recorded"
	Emulated  = "emulated"
	Predicted = "predicted"
)

// KindOf returns the origin of a recording: stacks of an emulated card have
// frames of the emulation, and those of a prediction name modules without
// lines.
func KindOf(t *trace.Trace) string {
	modules, lines := false, false
	for i := range t.Stacks.Len() {
		for _, id := range t.Stacks.IDs(trace.StackID(i)) {
			f := t.Stacks.Frame(id)
			if f.IsEmulation() {
				return Emulated
			}
			modules = modules || f.Line == 0 && !f.IsNative()
			lines = lines || f.Line != 0 || f.IsNative()
		}
	}
	if modules && !lines {
		return Predicted
	}
	return Recorded
}

// KindOfFile returns the origin of the first device whose origin can be seen.
func KindOfFile(s *snapshot.Snapshot) string {
	for _, t := range Devices(s) {
		if kind := KindOf(t); kind != Recorded {
			return kind
		}
	}
	return Recorded
}

// Lifetimes returns the allocations with their categories.
func (r *Recording) Lifetimes() []trace.Lifetime { return r.lifetimes() }

// Levels returns the allocated and reserved bytes after each event, as far as
// they are known.
func (r *Recording) Levels() timeline.Levels { return r.levels() }

// faithful returns the simulation of the recording, nil if it diverges from the
// recording or the recording is incomplete: then it proves nothing.
func (r *Recording) faithful() *allocator.Replay {
	replay, err := r.replay()
	if err != nil || replay.Recorded().Difference != nil {
		return nil
	}
	return replay
}

// startReplay begins the simulation on another core.
func (r *Recording) startReplay() {
	go func() {
		defer func() { _ = recover() }() // the caller that needs the replay gets the panic
		_, _ = r.replay()
	}()
}

// MomentError says that a name or a number is not a moment of a recording.
type MomentError struct {
	At      string
	Problem string
}

func (e *MomentError) Error() string { return fmt.Sprintf("%s: %s", e.At, e.Problem) }

// notAMoment is the error for anything but a name or a number.
const notAMoment = "not a moment; it can be peak, end, oom or the number of an event"

// Event returns the event that a moment means: peak, end, oom (the last
// failure) or the number of an event.
func (r *Recording) Event(at string) (int, error) {
	switch at {
	case "peak":
		return r.Peak().Event, nil
	case "end":
		return len(r.Events) - 1, nil
	case "oom":
		for i := len(r.Events) - 1; i >= 0; i-- {
			if r.Events[i].Action == trace.OutOfMemory {
				return i, nil
			}
		}
		return 0, &MomentError{at, fmt.Sprintf("there is no out-of-memory error on device %d", r.Device)}
	}
	n, err := strconv.Atoi(at)
	if err != nil {
		return 0, &MomentError{at, notAMoment}
	}
	if n < 0 || n >= len(r.Events) {
		return 0, &MomentError{at, fmt.Sprintf("device %[2]d has %[1]d events, numbered from 0", len(r.Events), r.Device)}
	}
	return n, nil
}

// Info describes the device.
func (r *Recording) Info() (*DeviceInfo, error) {
	r.startReplay() // it takes as long as everything else
	d, err := newDeviceInfo(r.Trace, r.Lifetimes())
	if err != nil {
		return nil, err
	}
	if replay := r.faithful(); replay != nil {
		d.addSimulated(r.Trace, replay)
	}
	return d, nil
}

// Top returns the n largest groups of live memory at a moment; 0 returns all.
func (r *Recording) Top(at, by string, n int) (*Top, error) {
	event, err := r.Event(at)
	if err != nil {
		return nil, err
	}
	top, err := newTop(r.Trace, r.Lifetimes(), event, by, n)
	if err != nil {
		return nil, err
	}
	top.At = at
	return top, nil
}

// Timeline returns the data for a picture of the recording. Allocations without
// a category are grouped by the line of the model that made them, or the module
// if it was predicted.
func (r *Recording) Timeline(opts timeline.Options) (*timeline.Timeline, error) {
	opts.Label = func(id trace.StackID) string { return label(r.Stacks.Frames(id)) }
	opts.Marks = r.marks()
	return timeline.Build(r.Trace, r.Lifetimes(), r.Levels(), opts)
}

// label names the code behind a stack. A prediction has modules and no lines;
// the same module of all layers gets one label.
func label(frames []trace.Frame) string {
	frame, ok := trace.InnermostModel(frames)
	switch {
	case !ok:
		return "no stack"
	case frame.Line == 0:
		return trace.AnyLayer(frame.Name)
	default:
		return frame.String()
	}
}
