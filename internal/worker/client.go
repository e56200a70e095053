package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"memorymark/internal/job"
)

// Client is a server that is reached by HTTP. docs/workers.md describes what it
// sends.
type Client struct {
	URL   string // of the server, as http://host:5001
	Token string
	HTTP  *http.Client // nil for one that waits as long as its context
}

func (c *Client) http() *http.Client { return cmp.Or(c.HTTP, http.DefaultClient) }

// StatusError is an answer that says no.
type StatusError struct {
	Status int
	Text   string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answered %d %s: %s", e.Status, http.StatusText(e.Status), e.Text)
}

// Is makes the status of a lease that has ended what job says of it.
func (e *StatusError) Is(target error) bool {
	switch e.Status {
	case http.StatusConflict:
		return target == job.ErrLost
	case http.StatusNotFound:
		return target == job.ErrNoWorker
	}
	return false
}

// refused reports whether the server does not let the worker in.
func refused(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden)
}

// permanent reports whether there is no use in trying again.
func permanent(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status < 500 && status.Status != http.StatusRequestTimeout && status.Status != http.StatusTooManyRequests
	}
	var invalid *job.InvalidError
	return errors.As(err, &invalid) || errors.Is(err, job.ErrLost) || errors.Is(err, job.ErrCancelled) || errors.Is(err, job.ErrTooMany)
}

// maxAnswer is the most that an answer may have: a job's payload, and some more.
const maxAnswer = job.MaxPayload + job.MaxPayload/2

// call makes a request and reads its answer. got is false if the answer has no
// content.
func (c *Client) call(ctx context.Context, method string, in, out any, path ...string) (got bool, err error) {
	target, err := url.JoinPath(c.URL, append([]string{"v1", "workers"}, path...)...)
	if err != nil {
		return false, err
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // it would make a result longer than it may be
	if err := encoder.Encode(in); err != nil {
		return false, err
	}
	r, err := http.NewRequestWithContext(ctx, method, target, &body)
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	answer, err := c.http().Do(r)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return false, fmt.Errorf("read the server's answer: %w", err)
	case answer.StatusCode >= 300:
		return false, &StatusError{answer.StatusCode, problemOf(data)}
	case answer.StatusCode == http.StatusNoContent:
		return false, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return false, fmt.Errorf("the answer is not a MemoryMark server's: %w", err)
	}
	return true, nil
}

// problemOf is what an answer says is wrong.
func problemOf(data []byte) string {
	var p struct{ Detail, Error string }
	if json.Unmarshal(data, &p) == nil && p.Detail+p.Error != "" {
		return cmp.Or(p.Detail, p.Error)
	}
	return strings.ToValidUTF8(string(data[:min(len(data), 500)]), "")
}

// Join implements Server.
func (c *Client) Join(ctx context.Context, a job.Announcement) (m job.Membership, err error) {
	_, err = c.call(ctx, http.MethodPost, a, &m)
	return m, err
}

// wait is how long a server may wait before it answers.
type wait struct {
	Seconds float64 `json:"wait_seconds"`
}

// Heartbeat implements Server.
func (c *Client) Heartbeat(ctx context.Context, worker string, a job.Announcement, d time.Duration) (o job.Orders, err error) {
	in := struct {
		job.Announcement
		wait
	}{a, wait{d.Seconds()}}
	_, err = c.call(ctx, http.MethodPost, in, &o, worker, "heartbeat")
	return o, err
}

// Take implements Server.
func (c *Client) Take(ctx context.Context, worker, card string, d time.Duration) (*job.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, d+answerTime)
	defer cancel()
	in := struct {
		Card string `json:"card"`
		wait
	}{card, wait{d.Seconds()}}
	var out struct {
		Job     string          `json:"job"`
		Attempt int             `json:"attempt"`
		Card    string          `json:"card"`
		Payload json.RawMessage `json:"payload"`
	}
	if got, err := c.call(ctx, http.MethodPost, in, &out, worker, "lease"); !got || err != nil {
		return nil, err
	}
	return &job.Job{ID: out.Job, Attempt: out.Attempt, Card: out.Card, Payload: out.Payload, State: job.Running, Worker: worker}, nil
}

// Progress implements Server.
func (c *Client) Progress(ctx context.Context, worker string, p job.Progress) error {
	_, err := c.call(ctx, http.MethodPost, p, nil, worker, "jobs", p.Job, "events")
	return err
}

// End implements Server.
func (c *Client) End(ctx context.Context, worker string, e job.Ending) error {
	in := struct {
		Attempt int             `json:"attempt"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   string          `json:"error,omitempty"`
		Reason  string          `json:"reason,omitempty"`
	}{Attempt: e.Attempt}
	what := "result"
	switch e.To {
	case job.Succeeded:
		in.Result = e.Result
	case job.Failed:
		in.Error = e.Reason
	default:
		what, in.Reason = "release", e.Reason
	}
	_, err := c.call(ctx, http.MethodPost, in, nil, worker, "jobs", e.Job, what)
	return err
}

// Leave implements Server.
func (c *Client) Leave(ctx context.Context, worker string) error {
	_, err := c.call(ctx, http.MethodDelete, nil, nil, worker)
	return err
}
