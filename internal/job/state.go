package job

import (
	"fmt"
	"slices"
	"time"
)

// State is where a job is in its life.
type State string

// The states. Their transitions are in the table below.
const (
	Queued    State = "queued"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// States lists the states in the order of a life.
var States = []State{Queued, Running, Succeeded, Failed, Cancelled}

// Transition is an edge of the state machine.
type Transition struct {
	From, To State
	When     string
}

// Transitions is the whole state machine. docs/jobs.md draws it, and nothing
// changes a state except by a row of it.
var Transitions = []Transition{
	{Queued, Running, "a worker takes it"},
	{Queued, Cancelled, "it is cancelled"},
	{Queued, Failed, "its record was damaged on the disk"},
	{Running, Queued, "its worker drains, or fell silent"},
	{Running, Succeeded, "its result is stored"},
	{Running, Failed, "its worker says why, the third one fell silent, or the tenth attempt came to nothing"},
	{Running, Cancelled, "it is cancelled"},
}

// Ended reports whether nothing comes after a state.
func (s State) Ended() bool {
	return !slices.ContainsFunc(Transitions, func(t Transition) bool { return t.From == s })
}

// Valid reports whether it is one of the states.
func (s State) Valid() bool { return slices.Contains(States, s) }

// to returns the job in its next state. The time of a transition is not
// written: it is the time at which the engine stored the record, see stamp.
func (j Job) to(next State, reason string) (Job, error) {
	ok := slices.ContainsFunc(Transitions, func(t Transition) bool { return t.From == j.State && t.To == next })
	if !ok {
		return j, fmt.Errorf("job %s is %s and cannot become %s", j.ID, j.State, next)
	}
	j.State, j.Reason = next, reason
	return j, nil
}

// taken returns the job as a worker's next attempt.
func (j Job) taken(worker string) (Job, error) {
	j, err := j.to(Running, "")
	if err != nil {
		return j, err
	}
	j.Attempt++
	j.Worker, j.Started = worker, time.Time{}
	return j, nil
}

// silent returns the job after its worker fell silent.
func (j Job) silent() (Job, error) {
	j.Deaths++
	return j.again(fmt.Sprintf("worker %s stopped responding in attempt %d", j.Worker, j.Attempt))
}

// again returns the job after an attempt that came to nothing: queued again, or
// failed if that happened too often.
func (j Job) again(reason string) (Job, error) {
	switch {
	case j.Deaths >= MaxDeaths:
		return j.to(Failed, fmt.Sprintf("%s; %d workers died or lost their connection over this job, so it is not tried again", reason, j.Deaths))
	case j.Attempt >= MaxAttempts:
		return j.to(Failed, fmt.Sprintf("%s; %d attempts came to nothing, so it is not tried again", reason, j.Attempt))
	}
	return j.to(Queued, reason)
}

// stamp fills in the time of the last transition, which is when the engine
// stored the record. So no worker's clock is in any record.
func (j *Job) stamp(stored time.Time) {
	at := &j.Ended
	switch j.State {
	case Queued:
		if !j.Queued.IsZero() {
			return // it was queued again
		}
		at = &j.Queued
	case Running:
		at = &j.Started
	}
	*at = stored.UTC().Truncate(time.Microsecond)
}
