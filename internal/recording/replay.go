package recording

import (
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/allocator"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
)

// Replay runs the recorded requests on the simulated allocator, as recorded or
// with a change. An invalid change is a *WhatIfError. A nil budget is
// unlimited.
func (r *Recording) Replay(whatIf WhatIf, e *workbudget.Budget) (*Replay, error) {
	change, err := whatIf.change(r.Settings)
	if err != nil {
		return nil, err
	}
	if len(r.Events) == 0 {
		return nil, &NotReplayableError{errNoEvents}
	}
	replay, err := r.replay()
	if err != nil {
		return nil, &NotReplayableError{err}
	}
	if whatIf.GraphPool != nil && !replay.HasPrivatePools() {
		return nil, &WhatIfError{GraphPoolSetting, fmt.Sprintf("%v, and the recording has no private pool: no CUDA graph was recorded", *whatIf.GraphPool)}
	}
	out, with := replay.Recorded(), allocator.WhatIf{Settings: &r.Settings}
	if change != nil {
		with = *change
		with.Work = e
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

var errNoEvents = errors.New("it has no events, only what was live when it was taken. Call torch.cuda.memory._record_memory_history() " +
	"before the code in question, and take the snapshot with its traces")

// NotReplayableError says why the requests of a recording cannot be replayed.
type NotReplayableError struct{ err error }

func (e *NotReplayableError) Error() string {
	return fmt.Sprintf("this recording cannot be replayed: %v", e.err)
}
func (e *NotReplayableError) Unwrap() error { return e.err }

// fragmentedState returns what the allocator held at the decisive moment: when
// a request failed, else at the peak of reserved memory.
func (r *Recording) fragmentedState(replay *allocator.Replay, out *allocator.Outcome, change allocator.WhatIf) (int, []trace.Segment) {
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
