package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"memorymark/internal/job"
)

const (
	// sendEvery is the pause between two batches of events: a viewer sees them soon,
	// and a job that says much does not make a request of every line.
	sendEvery = 100 * time.Millisecond
	// flushTime is how long the last events may take; progress is not worth more.
	flushTime = 5 * time.Second
	// maxPending is how many events wait for a server that is away, and of how many
	// bytes; later ones are dropped.
	maxPending      = 2000
	maxPendingBytes = 16 << 20
	// maxBatch is about how many bytes one batch has.
	maxBatch = 512 << 10
)

// reporter sends what a Runner says about its job, in order, without keeping the
// Runner waiting.
type reporter struct {
	server Server
	worker string
	job    job.Job
	log    *slog.Logger

	mu      sync.Mutex
	pending []json.RawMessage
	bytes   int           // of those
	sent    int           // events of this attempt that need not be sent again
	news    chan struct{} // receives when there is something to send
	ending  chan struct{} // is closed when there will be nothing more
	done    chan struct{}
	cancel  context.CancelFunc
}

func newReporter(s Server, worker string, j job.Job, log *slog.Logger) *reporter {
	r := &reporter{
		server: s, worker: worker, job: j, log: log,
		news: make(chan struct{}, 1), ending: make(chan struct{}), done: make(chan struct{}),
	}
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	go r.run(ctx)
	return r
}

// say takes an event.
func (r *reporter) say(data json.RawMessage) {
	if len(data) > job.MaxEvent || !json.Valid(data) {
		r.log.Warn("an event is not JSON or too long, and is dropped", "bytes", len(data))
		return
	}
	r.mu.Lock()
	if len(r.pending) < maxPending && r.bytes+len(data) <= maxPendingBytes {
		r.pending = append(r.pending, data)
		r.bytes += len(data)
	}
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// run sends events until flush.
func (r *reporter) run(ctx context.Context) {
	defer close(r.done)
	for ending := false; !ending; {
		select {
		case <-r.news:
		case <-r.ending:
			ending = true
		}
		for r.send(ctx) {
			select {
			case <-time.After(sendEvery):
			case <-r.ending:
			}
		}
	}
}

// send sends one batch, and reports whether there may be more.
func (r *reporter) send(ctx context.Context) bool {
	batch := r.next()
	if len(batch) == 0 || ctx.Err() != nil {
		return false
	}
	p := job.Progress{Job: r.job.ID, Attempt: r.job.Attempt, First: r.sent, Events: batch}
	if err := insist(ctx, func(ctx context.Context) error { return r.server.Progress(ctx, r.worker, p) }); err != nil {
		r.log.Warn("progress", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent += len(batch)
	for _, e := range batch {
		r.bytes -= len(e)
	}
	r.pending = r.pending[len(batch):]
	return true
}

// next is the next batch.
func (r *reporter) next() []json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := 0
	for i, e := range r.pending {
		if size += len(e); i == job.MaxEvents || i > 0 && size > maxBatch {
			return r.pending[:i]
		}
	}
	return r.pending
}

// flush waits until all was sent, but not for long.
func (r *reporter) flush() {
	close(r.ending)
	stop := time.AfterFunc(flushTime, r.cancel)
	defer stop.Stop()
	<-r.done
	r.cancel()
}
