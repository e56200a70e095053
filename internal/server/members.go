package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/job"
)

// The limits of what a worker sends. Beyond them it gets 413.
const (
	maxAnnouncement = longBody - 1 // of 64 cards with long names
	maxEventsBody   = 1 << 20
	maxResultBody   = job.MaxPayload + job.MaxReason + 4<<10
	resultTime      = 30 * time.Second // how long a result may take to arrive
	maxWait         = time.Minute      // how long a worker may have the server wait
)

// Lease is a job for a worker.
type Lease struct {
	Job     string          `json:"job"`
	Attempt int             `json:"attempt" doc:"identifies the lease in heartbeats, events and results"`
	Card    string          `json:"card" doc:"the card that it was submitted for, or any"`
	Payload json.RawMessage `json:"payload" doc:"what to do, as JSON"`
}

// Heartbeat is what a worker says of itself, and how long it waits for orders.
type Heartbeat struct {
	job.Announcement
	Wait
}

// Wait is how long a worker has the server wait.
type Wait struct {
	Seconds float64 `json:"wait_seconds,omitempty" minimum:"0" maximum:"60" doc:"how long to wait before answering that there is nothing"`
}

func (w Wait) duration() time.Duration {
	return min(max(time.Duration(w.Seconds*float64(time.Second)), 0), maxWait)
}

// WorkerOffer says for which card a worker wants a job.
type WorkerOffer struct {
	Card string `json:"card" doc:"one that the worker announced"`
	Wait
}

// WorkerResult is how a job ended: with a result or with an error.
type WorkerResult struct {
	Attempt int             `json:"attempt" doc:"of the lease"`
	Result  json.RawMessage `json:"result,omitempty" doc:"what was found out, as JSON of 4 MiB at most"`
	Error   string          `json:"error,omitempty" doc:"why there is no result, for people; 64 KiB of it are kept"`
}

// WorkerRelease gives a job back.
type WorkerRelease struct {
	Attempt int    `json:"attempt" doc:"of the lease"`
	Reason  string `json:"reason,omitempty" doc:"why, for people"`
}

// MemberPath is a worker in a path.
type MemberPath struct {
	ID string `path:"id" maxLength:"100"`
}

// MemberJob is a job of a worker in a path.
type MemberJob struct {
	ID  string `path:"id" maxLength:"100"`
	Job string `path:"job" maxLength:"100"`
}

// member makes the operation of a worker. Its body is not compared with the schema:
// that would take many times its memory, and package job checks what it says.
func member(op huma.Operation, status int, maxBody int64, errors ...int) huma.Operation {
	op.DefaultStatus, op.MaxBodyBytes, op.SkipValidateBody = status, maxBody, true
	op.Errors = append(errors, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity)
	return op
}

func (s *Server) memberRoutes(api huma.API) {
	join := post("join", "/v1/workers", "Join as a worker",
		"Takes a worker into the fleet, with the cards that it has. It must then send a heartbeat at least three times in every lease.", tagWorkers)
	huma.Register(api, member(join, http.StatusCreated, maxAnnouncement, http.StatusTooManyRequests),
		operation(s, func(ctx context.Context, a job.Announcement) (job.Membership, error) {
			return s.opts.Jobs.Join(ctx, callOf(ctx).owner, a)
		}))

	beat := post("heartbeat", "/v1/workers/{id}/heartbeat", "Keep a worker's leases",
		"Says what the worker is and does now. Each card names the job that it works on, with its attempt: that keeps the lease. "+
			"The answer comes as soon as the worker should do something else, and without orders after wait_seconds. "+
			"So a worker always has one heartbeat under way, and begins another when what it does has changed.", tagWorkers)
	huma.Register(api, member(beat, http.StatusOK, maxAnnouncement, http.StatusTooManyRequests), s.hearWorker)

	lease := post("lease", "/v1/workers/{id}/lease", "Wait for a job",
		"Leases the next job for one of the worker's cards, or one that any card can do. Without a job in wait_seconds the answer is 204. "+
			"An answer that is lost on its way costs nothing but time: the worker's heartbeats do not name that lease, so the job is queued again.", tagWorkers)
	lease.Responses = map[string]*huma.Response{"204": {Description: "There is no job."}}
	huma.Register(api, member(lease, http.StatusOK, maxAnnouncement, http.StatusNotFound), s.leaseJob)

	events := post("report-progress", "/v1/workers/{id}/jobs/{job}/events", "Say how a job goes",
		"Stores events, which viewers of the analysis see at once. The number of the first lets a worker send them again when an answer was lost.", tagWorkers)
	huma.Register(api, member(events, http.StatusNoContent, maxEventsBody, http.StatusConflict), s.hearProgress)

	result := post("report-result", "/v1/workers/{id}/jobs/{job}/result", "End a job",
		"Ends a lease with the result, or with the error that is the reason why there is none. It can be sent again when the answer was lost. "+
			"If the lease has ended before, the answer is 409 and nothing changes.", tagWorkers)
	huma.Register(api, member(result, http.StatusNoContent, maxResultBody, http.StatusConflict), s.endJob)

	release := post("release-job", "/v1/workers/{id}/jobs/{job}/release", "Give a job back",
		"Ends a lease without a result: another worker can take the job at once. After ten attempts it fails instead.", tagWorkers)
	huma.Register(api, member(release, http.StatusNoContent, maxAnnouncement, http.StatusConflict), s.releaseJob)

	leave := post("leave", "/v1/workers/{id}", "Leave", "Takes a worker out of the fleet. Jobs that it still has go back to the queue.", tagWorkers)
	leave.Method = http.MethodDelete
	huma.Register(api, member(leave, http.StatusNoContent, maxAnnouncement), func(ctx context.Context, in *workerID) (*struct{}, error) {
		return nil, s.asMember(ctx, in.ID, func(string) error { return s.opts.Jobs.Leave(ctx, in.ID) })
	})
}

// asMember does something as a worker, whose id must be of the token that is shown.
func (s *Server) asMember(ctx context.Context, worker string, do func(owner string) error) error {
	owner := callOf(ctx).owner
	if !job.Owns(owner, worker) {
		return huma.Error403Forbidden("this worker's id was not given to this token; POST /v1/workers gives one")
	}
	err := do(owner)
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errStopping):
		err = errStopping
	}
	return s.problem(ctx, err)
}

func (s *Server) hearWorker(ctx context.Context, in *struct {
	MemberPath
	Body Heartbeat
},
) (*output[job.Orders], error) {
	ctx, leave := s.untilStopping(ctx)
	defer leave()
	var out output[job.Orders]
	err := s.asMember(ctx, in.ID, func(owner string) (err error) {
		out.Body, err = s.opts.Jobs.Heartbeat(ctx, owner, in.ID, in.Body.Announcement, in.Body.duration())
		return err
	})
	return &out, err
}

// leaseAnswer is a lease, or nothing.
type leaseAnswer struct {
	Status int
	Body   *Lease
}

func (s *Server) leaseJob(ctx context.Context, in *struct {
	MemberPath
	Body WorkerOffer
},
) (*leaseAnswer, error) {
	ctx, leave := s.untilStopping(ctx)
	defer leave()
	out := leaseAnswer{Status: http.StatusNoContent}
	err := s.asMember(ctx, in.ID, func(string) error {
		j, err := s.opts.Jobs.Take(ctx, in.ID, in.Body.Card, in.Body.duration())
		if j != nil {
			out = leaseAnswer{http.StatusOK, &Lease{j.ID, j.Attempt, j.Card, j.Payload}}
		}
		return err
	})
	return &out, err
}

func (s *Server) hearProgress(ctx context.Context, in *struct {
	MemberJob
	Body job.Progress
},
) (*struct{}, error) {
	in.Body.Job = in.Job
	return nil, s.asMember(ctx, in.ID, func(string) error { return s.opts.Jobs.Progress(ctx, in.ID, in.Body) })
}

func (s *Server) endJob(ctx context.Context, in *struct {
	MemberJob
	Body WorkerResult
},
) (*struct{}, error) {
	e := job.Ending{Job: in.Job, Attempt: in.Body.Attempt, To: job.Succeeded, Result: in.Body.Result}
	if in.Body.Error != "" {
		e.To, e.Reason = job.Failed, in.Body.Error
	}
	return nil, s.asMember(ctx, in.ID, func(string) error { return s.opts.Jobs.End(ctx, in.ID, e) })
}

func (s *Server) releaseJob(ctx context.Context, in *struct {
	MemberJob
	Body WorkerRelease
},
) (*struct{}, error) {
	e := job.Ending{Job: in.Job, Attempt: in.Body.Attempt, To: job.Queued, Reason: in.Body.Reason}
	return nil, s.asMember(ctx, in.ID, func(string) error { return s.opts.Jobs.End(ctx, in.ID, e) })
}
