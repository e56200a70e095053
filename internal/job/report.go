package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// A worker does not write records and results itself: it reports to a server what
// it did, and the server decides whether that was its to do. So a worker can
// neither make jobs up nor delete any, nor end another's.

// act is what a worker reports.
type act string

// The acts.
const (
	takes     act = "take"      // a job that is queued
	overdue   act = "overdue"   // the worker of a running job fell silent, and its message came back
	succeeds  act = "succeed"   // with a result
	fails     act = "fail"      // with a reason
	givesBack act = "give back" // with a reason
)

// report is what a worker says about a job, and the record that it refers to.
type report struct {
	Job      string          `json:"job"`
	Revision uint64          `json:"revision"`
	Act      act             `json:"act"`
	Reason   string          `json:"reason,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// verdict is the answer to a report.
type verdict struct {
	Revision uint64 `json:"revision,omitempty"` // of the record as it is now
	Changed  bool   `json:"changed,omitempty"`  // it was not the record that the worker knew
	Refused  string `json:"refused,omitempty"`
}

// after returns the job after a worker's act.
func (j Job) after(p report, worker string) (Job, error) {
	switch {
	case p.Act == takes:
		return j.taken(worker)
	case p.Act == overdue && j.Worker == worker: // it was taken there, but the answer got lost
		return j.to(Queued, "taking it was not confirmed")
	case p.Act == overdue && j.State == Running:
		return j.silent()
	case j.Worker != worker || j.State != Running:
		return j, fmt.Errorf("worker %s does not have job %s", worker, j.ID)
	case p.Act == succeeds:
		return j.to(Succeeded, "")
	case p.Act == fails:
		return j.to(Failed, p.Reason)
	case p.Act == givesBack:
		return j.to(Queued, p.Reason)
	}
	return j, fmt.Errorf("a worker cannot %q a job", p.Act)
}

// receive does what a worker reports, if it is the worker's to do.
func (q *Queue) receive(ctx context.Context, worker string, p report) (revision uint64, err error) {
	r, err := q.get(ctx, p.Job)
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, errChanged
	case err != nil:
		return 0, err
	case r.revision != p.Revision, p.Act == overdue && r.Worker != worker && q.fleet.holds(r.Worker, r.ID):
		return 0, errChanged
	}
	next, err := r.after(p, worker)
	if err != nil {
		return 0, &InvalidError{"report", err.Error()}
	}
	if p.Act == succeeds {
		if len(p.Result) > MaxPayload || !json.Valid(p.Result) {
			return 0, &InvalidError{"result", "is not JSON, or too large"}
		}
		if _, err := q.results.Put(ctx, resultKey(r.ID, r.Attempt), p.Result); err != nil {
			return 0, fmt.Errorf("store result of job %s: %w", r.ID, err)
		}
	}
	// If another changed the record first, the result stays until the job goes:
	// a worker that got no answer reports again, and while both reports are under
	// way the one that comes too late must not take the other's result away.
	r, err = change(ctx, q.records, r, next)
	return r.revision, err
}

// mostReports is how many reports a server looks at at a time.
const mostReports = 64

// followReports answers the reports of workers; of several servers one does.
func (q *Queue) followReports(ctx context.Context) error {
	places := make(chan struct{}, mostReports)
	s, err := q.conn.QueueSubscribe(reportSubject+"*", "memorymark", func(m *nats.Msg) {
		places <- struct{}{}
		go func() {
			defer func() { <-places }()
			q.answerReport(ctx, m)
		}()
	})
	if err != nil {
		return err
	}
	q.following.Go(func() {
		<-ctx.Done()
		s.Unsubscribe() //nolint:errcheck // it only fails if the connection is closed
	})
	return nil
}

func (q *Queue) answerReport(ctx context.Context, m *nats.Msg) {
	worker := strings.TrimPrefix(m.Subject, reportSubject)
	var p report
	if json.Unmarshal(m.Data, &p) != nil || !strings.HasPrefix(m.Reply, inboxOf(worker)+".") {
		return // an answer elsewhere would be stored as whatever is there
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	var v verdict
	var err error
	v.Revision, err = q.receive(ctx, worker, p)
	var invalid *InvalidError
	switch {
	case errors.Is(err, errChanged):
		v.Changed = true
	case errors.As(err, &invalid):
		v.Refused = err.Error()
	case err != nil:
		return // it asks again
	}
	if data, err := json.Marshal(v); err == nil {
		m.Respond(data) //nolint:errcheck // it asks again
	}
}

// report tells a server what this worker did, and returns the record's revision.
func (l *Link) report(ctx context.Context, p report) (uint64, error) {
	if l.server != nil {
		return l.server.receive(ctx, l.id, p)
	}
	data, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	m, err := l.conn.RequestWithContext(ctx, reportSubject+l.id, data)
	if err != nil {
		return 0, fmt.Errorf("report job %s: %w", p.Job, err)
	}
	var v verdict
	switch err := json.Unmarshal(m.Data, &v); {
	case err != nil:
		return 0, fmt.Errorf("report job %s: %w", p.Job, err)
	case v.Changed:
		return 0, errChanged
	case v.Refused != "":
		return 0, errors.New(v.Refused)
	}
	return v.Revision, nil
}
