package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// JoinConfig says where a worker finds its jobs.
type JoinConfig struct {
	// URL is a MemoryMark server, as http://host:5001 or https://host, whose
	// Handler is at WorkerPath; or the engine itself, as nats://host:4222.
	URL string
	// Token lets the worker in.
	Token string
	// Credentials is a file of NATS credentials, for an outside cluster that
	// wants them instead of a token.
	Credentials string
	// CA is a file of certificates to trust beside the machine's; empty for none.
	CA string
	// Log is told what goes wrong with the connection; nil means nobody.
	Log *slog.Logger
}

// WorkerPath is where a server offers Queue.Handler.
const WorkerPath = "/v1/workers/connect"

// Link is a worker's side of the queue. It reconnects by itself, forever.
type Link struct {
	id      string
	conn    *nats.Conn
	owned   bool // Close closes the connection
	js      jetstream.JetStream
	records jetstream.KeyValue
	workers jetstream.KeyValue
	server  *Queue // of this process, nil if the worker has one of its own
	lease   time.Duration

	mu        sync.Mutex
	consumers map[string]jetstream.Consumer
	held      map[string]int // jobs that this worker works on, and their attempts
	back      chan struct{}  // receives after the connection was restored
}

// Join connects a worker.
func Join(ctx context.Context, c JoinConfig) (*Link, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	target, where, err := c.target()
	if err != nil {
		return nil, err
	}
	l := newLink(c.Token)
	if l.conn, err = nats.Connect(target, append(l.options(c), where...)...); err != nil {
		return nil, fmt.Errorf("join %s: %w", c.URL, err)
	}
	l.owned = true
	if err := l.open(ctx); err != nil {
		l.Close()
		return nil, fmt.Errorf("join %s: %w", c.URL, err)
	}
	return l, nil
}

// Schemes are how a URL to join can begin.
var Schemes = []string{"http", "https", "nats", "tls", "ws", "wss"}

// target returns the URL that the client understands.
func (c *JoinConfig) target() (string, []nats.Option, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", nil, fmt.Errorf("join %q: %w", c.URL, err)
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
		return c.URL, nil, nil
	case "http", "https":
		path := strings.TrimSuffix(u.Path, "/") + WorkerPath
		u.Scheme, u.Path = "ws"+strings.TrimPrefix(u.Scheme, "http"), ""
		return u.String(), []nats.Option{nats.ProxyPath(path)}, nil
	default:
		return "", nil, fmt.Errorf("join %q: write a server as http://host:5001, or a NATS cluster as nats://host:4222", c.URL)
	}
}

func (l *Link) options(c JoinConfig) []nats.Option {
	options := []nats.Option{
		nats.Name("memorymark worker"), nats.CustomInboxPrefix(inboxOf(l.id)),
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(250*time.Millisecond, time.Second),
		// A server that restarts with other tokens is no reason to give up a running job.
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.Log.Warn("connection lost", "error", err) }),
		nats.ReconnectHandler(func(*nats.Conn) {
			c.Log.Info("connection restored")
			l.restored()
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.Log.Warn("connection", "error", err) }),
	}
	if c.CA != "" {
		options = append(options, nats.RootCAs(c.CA))
	}
	if c.Credentials != "" {
		return append(options, nats.UserCredentials(c.Credentials))
	}
	return append(options, nats.UserInfo(workerName+l.id, c.Token))
}

// Link returns the link of a worker in the server's own process.
func (q *Queue) Link(ctx context.Context) (*Link, error) {
	l := newLink("")
	l.conn, l.server = q.conn, q
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

func newLink(token string) *Link {
	return &Link{
		id: newWorkerID(time.Now(), token).String(), consumers: make(map[string]jetstream.Consumer),
		held: make(map[string]int), back: make(chan struct{}, 1),
	}
}

func (l *Link) open(ctx context.Context) (err error) {
	if l.js, err = jetstream.New(l.conn); err != nil {
		return err
	}
	// The server may be killed while it is asked.
	return answer(ctx, l.find)
}

// find looks up what the engine holds.
func (l *Link) find(ctx context.Context) (err error) {
	for name, bucket := range map[string]*jetstream.KeyValue{recordBucket: &l.records, workerBucket: &l.workers} {
		if *bucket, err = l.js.KeyValue(ctx, name); err != nil {
			return fmt.Errorf("%w (has a server opened this queue?)", err)
		}
	}
	any, err := l.consumer(ctx, Any)
	if err != nil {
		return err
	}
	l.lease = any.CachedInfo().Config.AckWait
	return nil
}

// ID is the name under which the worker takes jobs. Each Link has its own.
func (l *Link) ID() string { return l.id }

// Lease is how long the worker may be silent. It is the server's decision.
func (l *Link) Lease() time.Duration { return l.lease }

// Restored receives after the connection was lost and is there again, when a
// worker should say that it is there.
func (l *Link) Restored() <-chan struct{} { return l.back }

func (l *Link) restored() {
	select {
	case l.back <- struct{}{}:
	default:
	}
}

// Close leaves. Jobs that were taken and not reported go to others, after the
// lease.
func (l *Link) Close() {
	if l.owned {
		l.conn.FlushTimeout(time.Second) //nolint:errcheck // acknowledgements that get lost are only late
		l.conn.Close()
	}
}

// Announce says that the worker is there, with what cards. It must be said
// again within every lease.
func (l *Link) Announce(ctx context.Context, w Worker) error {
	w.ID = l.id
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if _, err := l.workers.Put(ctx, l.id, data); err != nil {
		return fmt.Errorf("announce worker: %w", err)
	}
	return nil
}

// Leave takes the announcement back.
func (l *Link) Leave(ctx context.Context) error { return l.workers.Delete(ctx, l.id) }

// Offers returns a channel that receives when a job for a card was submitted,
// and a function that ends it. It may miss one that comes back from another
// worker, so Take should be tried now and then, too.
func (l *Link) Offers(card string) (_ <-chan struct{}, stop func(), err error) {
	offers := make(chan struct{}, 1)
	var subscriptions []*nats.Subscription
	stop = func() {
		for _, s := range subscriptions {
			s.Unsubscribe() //nolint:errcheck // it only fails if the connection is closed, which ends it too
		}
	}
	for _, c := range []string{card, Any} {
		s, err := l.conn.Subscribe(offerSubject+c, func(*nats.Msg) {
			select {
			case offers <- struct{}{}:
			default:
			}
		})
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("listen for jobs: %w", err)
		}
		subscriptions = append(subscriptions, s)
	}
	return offers, stop, nil
}

// consumer returns the consumer of a card. A server creates it when it hears
// of the card, so it may be missing for a moment.
func (l *Link) consumer(ctx context.Context, card string) (jetstream.Consumer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.consumers[card]; c != nil {
		return c, nil
	}
	c, err := l.js.Consumer(ctx, queueStream, consumerName(card))
	if err != nil {
		return nil, err
	}
	l.consumers[card] = c
	return c, nil
}

// Take takes a job for a card, or one that any card can do. It does not wait:
// without a job it returns nil.
func (l *Link) Take(ctx context.Context, card string) (*Lease, error) {
	for _, c := range slices.Compact([]string{card, Any}) {
		for {
			lease, more, err := l.takeFrom(ctx, c)
			if lease != nil || err != nil {
				return lease, err
			}
			if !more {
				break
			}
		}
	}
	return nil, nil
}

// takeFrom looks at one message of a queue and reports whether there may be
// more.
func (l *Link) takeFrom(ctx context.Context, card string) (lease *Lease, more bool, err error) {
	if ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	// Once begun, it is not interrupted: a job that was taken by a worker that
	// does not know it would have to wait for the lease.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTime)
	defer cancel()
	m, err := l.next(ctx, card)
	if m == nil || err != nil {
		return nil, false, err
	}
	lease, err = l.accept(ctx, m)
	return lease, true, err
}

// next returns the next message of a queue, nil if there is none.
func (l *Link) next(ctx context.Context, card string) (jetstream.Msg, error) {
	c, err := l.consumer(ctx, card)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take a job: %w", err)
	}
	batch, err := c.FetchNoWait(1)
	if err != nil {
		return nil, fmt.Errorf("take a job: %w", err)
	}
	m := <-batch.Messages()
	if m == nil && batch.Error() != nil {
		return nil, fmt.Errorf("take a job: %w", batch.Error())
	}
	return m, nil
}

// accept turns a message into a lease: it raises the attempt in the record. It
// returns nil if there is nothing to do for this message, or not now.
func (l *Link) accept(ctx context.Context, m jetstream.Msg) (*Lease, error) {
	r, err := l.get(ctx, string(m.Data()))
	switch {
	case errors.Is(err, ErrNotFound):
		// It was deleted, and a server will take the message out; or this
		// replica does not have it yet.
		return nil, m.NakWithDelay(time.Second)
	case err != nil:
		return nil, errors.Join(err, m.Nak())
	case r.State.Ended():
		return nil, m.Ack()
	case r.State == Running && l.holds(ctx, r.Worker, r.ID):
		// The engine was away for longer than the lease; the worker was not.
		return nil, m.NakWithDelay(l.lease / 2)
	}
	if r.State == Running {
		if r, err = l.step(ctx, r, overdue); err == nil && r.State.Ended() {
			return nil, m.Ack()
		}
	}
	if err == nil {
		r, err = l.step(ctx, r, takes)
	}
	if errors.Is(err, errChanged) {
		return nil, m.NakWithDelay(100 * time.Millisecond)
	}
	if err != nil {
		return nil, errors.Join(err, m.Nak())
	}
	return newLease(l, m, r), nil
}

// step changes a record once.
func (l *Link) step(ctx context.Context, r record, what act) (record, error) {
	p := report{Job: r.ID, Revision: r.revision, Act: what}
	next, err := r.after(p, l.id)
	if err != nil {
		return r, err
	}
	revision, err := l.report(ctx, p)
	return record{Job: next, revision: revision}, err
}

func (l *Link) get(ctx context.Context, id string) (record, error) {
	entry, err := l.records.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return record{}, ErrNotFound
	}
	if err != nil {
		return record{}, fmt.Errorf("read job %s: %w", id, err)
	}
	return decodeRecord(entry.Value(), entry.Revision(), entry.Created())
}

// holds reports whether a worker works on a job, as it has lately said.
func (l *Link) holds(ctx context.Context, worker, job string) bool {
	if worker == l.id {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.held[job] != 0
	}
	entry, err := l.workers.Get(ctx, worker)
	if err != nil {
		return false
	}
	var w Worker
	return json.Unmarshal(entry.Value(), &w) == nil && slices.Contains(w.Jobs, job)
}

// hold and release note what this worker works on.
func (l *Link) hold(j Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[j.ID] = j.Attempt
}

func (l *Link) release(j Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[j.ID] == j.Attempt {
		delete(l.held, j.ID)
	}
}
