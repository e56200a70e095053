package recording

import (
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/effort"
	"memorymark/internal/trace"
)

// Replay runs the recorded requests on the simulated allocator: as they were,
// or with a change. What it must not be is a *WhatIfError.
// A nil effort is without bound.
func (r *Recording) Replay(whatIf WhatIf, e *effort.Effort) (*Replay, error) {
	change, err := whatIf.change(r.Settings)
	if err != nil {
		return nil, err
	}
	replay, err := r.replay()
	if err != nil {
		return nil, err
	}
	out, with := replay.Recorded(), allocator.Change{Settings: &r.Settings}
	if change != nil {
		with = *change
		with.Effort = e
		if out = replay.WhatIf(with); out.Stopped != nil {
			return nil, out.Stopped
		}
	}
	answer := newReplay(r.Trace, replay, out, with)
	event, held := r.fragmentedState(replay, out, with)
	if err := e.Err(); err != nil {
		return nil, err
	}
	answer.addFragmentation(r.Trace, event, allocator.Fragment(held))
	return answer, nil
}

// fragmentedState returns what the allocator held when it mattered: when a
// request failed, else when the most was reserved.
func (r *Recording) fragmentedState(replay *allocator.Replay, out *allocator.Outcome, change allocator.Change) (int, []trace.Segment) {
	if out.Failed != nil {
		return out.Events, out.Final
	}
	event := out.Fullest
	if event < 0 {
		return 0, out.Final
	}
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
