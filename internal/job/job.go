// Package job keeps analyses that take long: their queue, their history, their
// progress and their results, on NATS JetStream. A Queue is what a server has: it
// submits, lists, watches and cancels, and it speaks with workers: they join, take
// jobs, send heartbeats and report. How they reach it is the server's business. What
// a job is about is opaque here; its payload, its progress and its result are JSON
// that others understand.
//
// Where things are (docs/jobs.md has the details):
//
//	stream memorymark_jobs      what is to be done; a message is there until its job has ended
//	bucket memorymark_records   a Job for each, changed only by compare-and-set
//	bucket memorymark_results   a result for each attempt that finished
//	stream memorymark_events    what workers say while they work
//	bucket memorymark_members   which workers are there, forgotten when silent
//
// Three rules make it safe; everything else may fail at any time:
//
//  1. A job that has not ended has a message in the queue. The message is
//     published after the record and deleted after the end of the record,
//     and repair restores it where a crash fell in between.
//  2. The queue holds one message for each card and key. So equal requests find
//     each other there.
//  3. A lease raises the record's attempt by compare-and-set, and every later
//     change by that worker needs the attempt that it has. A worker that was given
//     up for dead can finish its work, but not report it.
//
// No clock is compared with another machine's: times come from the engine, and
// silence is measured by whoever waits.
package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Job is a job's record: what was asked, and what became of it.
type Job struct {
	ID      string            `json:"id"`
	Card    string            `json:"card"` // a card's id, or Any
	Key     string            `json:"key"`  // equal jobs have equal keys
	Labels  map[string]string `json:"labels,omitempty"`
	Payload json.RawMessage   `json:"payload"`

	State   State  `json:"state"`
	Attempt int    `json:"attempt,omitempty"` // how often it was taken
	Deaths  int    `json:"deaths,omitempty"`  // how many of those attempts fell silent
	Worker  string `json:"worker,omitempty"`  // who took it last
	Reason  string `json:"reason,omitempty"`  // why it failed, was cancelled or is queued again

	Queued  time.Time `json:"queued,omitzero"`  // when it was submitted
	Started time.Time `json:"started,omitzero"` // when it was taken last
	Ended   time.Time `json:"ended,omitzero"`
}

// Any is the queue of jobs that every card can do.
const Any = "any"

// MaxDeaths is how many workers may fall silent over a job before it is
// failed: a job that kills its worker must not kill the whole fleet.
const MaxDeaths = 3

// MaxAttempts is how often a job is tried at all, whatever the reason for which
// an attempt came to nothing.
const MaxAttempts = 10

// Request is what Submit takes.
type Request struct {
	Card    string            // a card's id, or Any
	Payload json.RawMessage   // what the worker gets
	Labels  map[string]string // what List filters by
	// Key says which requests are equal; while one of them lasts, others join
	// it. Empty means that those with the same card and payload are.
	Key string
}

// Errors that callers tell apart.
var (
	// ErrNotFound says that there is no job with that id.
	ErrNotFound = errors.New("no such job")
	// ErrActive is returned by Delete for a job that has not ended.
	ErrActive = errors.New("the job is still running; cancel it first")
	// ErrEnded is returned by Cancel for a job that has ended.
	ErrEnded = errors.New("the job has ended already")
	// ErrNoResult says that a job has no result, or none yet.
	ErrNoResult = errors.New("the job has no result")
	// ErrDamaged says that a result cannot be read any more.
	ErrDamaged = errors.New("the result was damaged on the disk; ask again")
	// ErrFull is returned by Submit when the queue holds as much as it may.
	ErrFull = errors.New("the queue is full; try again later")
)

// InvalidError is a request that can never be accepted.
type InvalidError struct{ Field, Problem string }

func (e *InvalidError) Error() string { return fmt.Sprintf("%s %s", e.Field, e.Problem) }

// MaxPayload is the most bytes that a payload or a result may have.
const MaxPayload = 4 << 20

const (
	maxLabels      = 16
	maxLabelLength = 128
)

// cardID is what can be part of a subject.
var cardID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)

func (r *Request) validate() error {
	switch {
	case !cardID.MatchString(r.Card):
		return &InvalidError{"card", fmt.Sprintf("%q must be a card's id in lower-case letters, digits and dashes, or %q", r.Card, Any)}
	case len(r.Payload) > MaxPayload:
		return &InvalidError{"payload", fmt.Sprintf("has %d bytes; %d are allowed", len(r.Payload), MaxPayload)}
	case !json.Valid(r.Payload):
		return &InvalidError{"payload", "is not JSON"}
	case len(r.Labels) > maxLabels:
		return &InvalidError{"labels", fmt.Sprintf("are %d; %d are allowed", len(r.Labels), maxLabels)}
	}
	for name, value := range r.Labels {
		if name == "" || len(name) > maxLabelLength || len(value) > maxLabelLength {
			return &InvalidError{"labels", fmt.Sprintf("have a name or value of 0 or more than %d bytes: %.40q", maxLabelLength, name)}
		}
	}
	return nil
}
