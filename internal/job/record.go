package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// record is a job with its revision, which a change of it must name.
type record struct {
	Job
	revision uint64
	heard    time.Time // when this server heard of it, on its own clock
}

func decodeRecord(data []byte, revision uint64, stored time.Time) (record, error) {
	r := record{revision: revision}
	if err := json.Unmarshal(data, &r.Job); err != nil {
		return r, fmt.Errorf("read record %d of the history: %w", revision, err)
	}
	r.stamp(stored)
	return r, nil
}

// encode leaves out the time of the last transition: it is when the engine
// stores the record.
func encode(j Job) ([]byte, error) {
	switch {
	case j.State == Running:
		j.Started, j.Ended = time.Time{}, time.Time{}
	case j.State.Ended():
		j.Ended = time.Time{}
	}
	return json.Marshal(j)
}

// errChanged says that another writer changed a record first.
var errChanged = errors.New("another writer changed the record")

// change stores a record's next state, if it was not changed since it was read.
// The time of the transition is only known once it is read again.
func change(ctx context.Context, records jetstream.KeyValue, r record, next Job) (record, error) {
	data, err := encode(next)
	if err != nil {
		return r, err
	}
	revision, err := records.Update(ctx, r.ID, data, r.revision)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return r, errChanged
	}
	if err != nil {
		return r, fmt.Errorf("store job %s: %w", r.ID, err)
	}
	return record{Job: next, revision: revision}, nil
}

// get reads a record.
func (q *Queue) get(ctx context.Context, id string) (record, error) {
	if _, ok := parseID(id); !ok {
		return record{}, ErrNotFound
	}
	m, err := lastMessage(ctx, q.conn, "KV_"+recordBucket, recordSubject+id)
	if err != nil {
		return record{}, err
	}
	return decodeRecord(m.Data, m.Sequence, m.Time)
}

// lastMessage reads the last message of a subject from the stream's leader.
// The client's own way may ask any replica, which may not have it yet: a job
// that was just submitted must not be missing. It returns ErrNotFound if there
// is none or if it marks a deletion.
func lastMessage(ctx context.Context, conn *nats.Conn, stream, subject string) (*jetstream.RawStreamMsg, error) {
	question, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return nil, err
	}
	var reply *nats.Msg
	err = answer(ctx, func(ctx context.Context) (err error) {
		if reply, err = conn.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, question); err != nil {
			return fmt.Errorf("read %s: %w", subject, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var found struct {
		Message *struct {
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &found); err != nil {
		return nil, fmt.Errorf("read %s: %w", subject, err)
	}
	m := found.Message
	switch {
	case found.Error != nil && found.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return nil, ErrNotFound
	case found.Error != nil:
		return nil, fmt.Errorf("read %s: %w", subject, found.Error)
	case m == nil || len(m.Data) == 0 && len(m.Header) > 0:
		return nil, ErrNotFound
	}
	return &jetstream.RawStreamMsg{Subject: subject, Sequence: m.Sequence, Data: m.Data, Time: m.Time}, nil
}

// Get returns a job.
func (q *Queue) Get(ctx context.Context, id string) (*Job, error) {
	r, err := q.get(ctx, id)
	if err != nil {
		return nil, err
	}
	return &r.Job, nil
}

// Result returns what a job that succeeded found out, or ErrNoResult.
func (q *Queue) Result(ctx context.Context, id string) (json.RawMessage, error) {
	r, err := q.get(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.State != Succeeded {
		return nil, ErrNoResult
	}
	m, err := lastMessage(ctx, q.conn, "KV_"+resultBucket, "$KV."+resultBucket+"."+resultKey(id, r.Attempt))
	if errors.Is(err, ErrNotFound) {
		return nil, ErrDamaged // it was stored before the job succeeded
	}
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(m.Data)) == 0 { // so an earlier version marked what was damaged
		return nil, ErrDamaged
	}
	return m.Data, nil
}

// mutate changes a record, however often others change it meanwhile. The
// function returns the next state of the job or an error, which ends it.
func (q *Queue) mutate(ctx context.Context, id string, f func(Job) (Job, error)) (r record, err error) {
	var next Job
	err = q.answerStored(ctx, func(ctx context.Context) error {
		if r, err = q.get(ctx, id); err != nil {
			return err
		}
		if next.ID != "" && r.State == next.State && r.Attempt == next.Attempt {
			return nil // an earlier try did it, and its answer was lost
		}
		if next, err = f(r.Job); err != nil {
			return err
		}
		_, err = change(ctx, q.records, r, next)
		return err
	})
	if err != nil {
		return r, err
	}
	// Read again for the time of the change, and so that a list shows it.
	if r, err = q.get(ctx, id); err == nil {
		q.index.put(r)
	}
	return r, err
}

// Cancel ends a job that has not ended. Its worker is told to stop; what it
// reports later does not count. ErrEnded comes with the job as it is.
func (q *Queue) Cancel(ctx context.Context, id, reason string) (*Job, error) {
	r, err := q.mutate(ctx, id, func(j Job) (Job, error) {
		if j.State.Ended() {
			return j, ErrEnded
		}
		return j.to(Cancelled, reason)
	})
	if errors.Is(err, ErrEnded) {
		return &r.Job, err
	}
	if err != nil {
		return nil, err
	}
	q.settle(ctx, r.Job)
	return &r.Job, nil
}

// settle takes the message of a job that has ended out of the queue. What it
// leaves, repair takes out: no one waits for an answer that a node took with it.
func (q *Queue) settle(ctx context.Context, j Job) {
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	if err := q.unqueue(ctx, j); err != nil {
		q.config.Log.Warn("take job out of the queue", "job", j.ID, "error", err)
	}
}

// unqueue removes the message of a job, and not that of an equal one.
func (q *Queue) unqueue(ctx context.Context, j Job) error {
	m, err := lastMessage(ctx, q.conn, queueStream, subjectOf(j.Card, j.Key))
	if errors.Is(err, ErrNotFound) || err == nil && string(m.Data) != j.ID {
		return nil
	}
	if err != nil {
		return err
	}
	if err = q.queue.DeleteMsg(ctx, m.Sequence); errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return nil // it was acknowledged meanwhile
	}
	return err
}

// Delete removes a job that has ended from the history, with its result and
// its events.
func (q *Queue) Delete(ctx context.Context, id string) error {
	r, err := q.get(ctx, id)
	if err != nil {
		return err
	}
	if !r.State.Ended() {
		return ErrActive
	}
	// The record goes last: as long as it is there, Delete can be tried again.
	if err := q.events.Purge(ctx, jetstream.WithPurgeSubject(eventSubject+id)); err != nil {
		return fmt.Errorf("delete events of job %s: %w", id, err)
	}
	results, err := q.js.Stream(ctx, "KV_"+resultBucket)
	if err != nil {
		return fmt.Errorf("delete result of job %s: %w", id, err)
	}
	if err := results.Purge(ctx, jetstream.WithPurgeSubject("$KV."+resultBucket+"."+id+".*")); err != nil {
		return fmt.Errorf("delete result of job %s: %w", id, err)
	}
	return q.forget(ctx, id)
}

// forget removes a record. A mark of it stays for a while, so that other
// servers forget it too.
func (q *Queue) forget(ctx context.Context, id string) error {
	if err := q.records.Purge(ctx, id, jetstream.PurgeTTL(deletedTrace)); err != nil {
		return fmt.Errorf("delete job %s: %w", id, err)
	}
	q.index.remove(id)
	q.bell.ring(id)
	return nil
}
