package recording

import (
	"errors"
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/report"
	"memorymark/internal/trace"
)

// Replay runs the recorded requests on the simulated allocator: as they were,
// or with a change, nil for none.
func (r *Recording) Replay(change *allocator.Change) (*report.Replay, error) {
	replay, err := r.replay()
	if err != nil {
		return nil, err
	}
	out, with := replay.Recorded(), allocator.Change{Settings: &r.Settings}
	if change != nil {
		with = *change
		with.Levels = true
		out = replay.WhatIf(with)
	}
	answer := report.NewReplay(r.Trace, replay, out, with)
	event, held := r.fragmentedState(replay, out, with)
	answer.AddFragmentation(r.Trace, event, allocator.Fragment(held))
	return answer, nil
}

// fragmentedState returns what the allocator held when it mattered: when a
// request failed, else when the most was reserved.
func (r *Recording) fragmentedState(replay *allocator.Replay, out *allocator.Outcome, change allocator.Change) (int, []trace.Segment) {
	if out.Failed != nil {
		return out.Events, out.Final
	}
	reserved := out.Levels.Reserved[:out.Events]
	if len(reserved) == 0 {
		return 0, out.Final
	}
	event := slices.Index(reserved, slices.Max(reserved))
	if out != replay.Recorded() {
		change.Until = event + 1
		return event, replay.WhatIf(change).Final
	}
	oom := slices.IndexFunc(r.Events, func(e trace.Event) bool { return e.Action == trace.OutOfMemory })
	if oom >= 0 {
		event = oom
	}
	return event, replay.HeldAfter(event)
}

// ErrNotReplayed says that only the end of a recording is known, because the
// simulation does not follow it.
var ErrNotReplayed = errors.New("the allocator's state is known only at the end: the simulation does not follow this recording")

// Segments returns what the allocator held after an event.
func (r *Recording) Segments(event int) ([]trace.Segment, error) {
	if event == len(r.Events)-1 && r.Final != nil {
		return r.Final, nil
	}
	replay := r.faithful()
	if replay == nil {
		return nil, ErrNotReplayed
	}
	return replay.HeldAfter(event), nil
}

// Diff returns the n largest changes of what is live at a moment, by stack; 0
// is all of them.
func Diff(before, after *Recording, at string, n int) (*report.Diff, error) {
	var sides [2]report.DiffSide
	var live [2][]trace.Lifetime
	for i, r := range []*Recording{before, after} {
		event, err := r.Event(at)
		if err != nil {
			return nil, err
		}
		live[i] = trace.Live(r.Lifetimes(), event)
		level := trace.At(live[i], event)
		sides[i] = report.DiffSide{Device: r.Device, At: at, Event: event, Bytes: level.Bytes, Count: level.Count}
	}
	return report.NewDiff(sides[0], sides[1], trace.Diff(before.Tables, live[0], after.Tables, live[1]), n), nil
}
