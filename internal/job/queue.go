package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Config says where the queue lives. Exactly one of Dir and URL is needed.
type Config struct {
	// Dir is the folder of the embedded engine's files. Only one process can
	// have it open.
	Dir string

	// URL is an outside cluster, as nats://a:4222,nats://b:4222. Its servers
	// must have sync_interval: always, or what was acknowledged can be lost when
	// the power fails.
	URL string
	// Credentials is a file of NATS credentials for URL; empty for none.
	Credentials string
	// Replicas is on how many servers of the cluster everything is stored; 0
	// means 3 in a cluster and 1 on a single server.
	Replicas int

	// Lease is how long a worker may be silent before its job is given to
	// another; 0 means DefaultLease.
	Lease time.Duration
	// HistoryBytes is how much records and results may take; then the jobs that
	// ended longest ago are forgotten. 0 means DefaultHistoryBytes.
	HistoryBytes int64
	// Log is told what goes wrong in the background; nil discards it.
	Log *slog.Logger

	unsynced bool // for benchmarks that first need a large history
}

// DefaultLease outlasts a garbage collection, a restart of the server and a
// hiccup of the network, and is short enough to wait for.
const DefaultLease = 30 * time.Second

// clusterReplicas survive the loss of one.
const clusterReplicas = 3

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Dir == "" && c.URL == "":
		return c, errors.New("open queue: give a folder for the embedded engine or the URL of a cluster")
	case c.Dir != "" && c.URL != "":
		return c, errors.New("open queue: give a folder for the embedded engine or the URL of a cluster, not both")
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.HistoryBytes == 0 {
		c.HistoryBytes = DefaultHistoryBytes
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Queue is the server's side. Its methods may be called at the same time.
type Queue struct {
	config  Config
	engine  atomic.Pointer[engine] // nil with an outside cluster
	storage *storage
	conn    *nats.Conn
	js      jetstream.JetStream
	layout

	index *index
	fleet *fleet
	bell  *bell
	now   func() time.Time
	name  string // of this server, among those that share a cluster

	maxHistory uint64

	repairing   sync.Mutex // guards lostRecords
	lostRecords bool       // some were lost on the disk, and it is not known whose

	verifying atomic.Bool // everything stored is being read

	stop    context.CancelFunc
	closing <-chan struct{}
	running sync.WaitGroup // what lasts until Close

	stopFollowing context.CancelFunc
	following     sync.WaitGroup // what lasts as long as the engine
}

// Open starts the embedded engine or connects to a cluster, creates what is
// missing there, and repairs what a crash left behind. It does not wait until
// the history is loaded; the methods that need it do.
func Open(ctx context.Context, c Config) (q *Queue, err error) {
	if c, err = c.withDefaults(); err != nil {
		return nil, err
	}
	q = &Queue{config: c, storage: newStorage(c.Dir), bell: newBell(), fleet: newFleet(c.Lease), maxHistory: maxHistory, now: time.Now, name: rand.Text()}
	q.index = newIndex(q.bell)
	background, stop := context.WithCancel(context.Background())
	q.stop, q.closing = stop, background.Done()
	defer func() {
		if err != nil {
			q.Close()
			q = nil
		}
	}()
	if err = q.connect(); err != nil {
		return q, fmt.Errorf("open queue: %w", err)
	}
	if q.js, err = jetstream.New(q.conn); err != nil {
		return q, fmt.Errorf("open queue: %w", err)
	}
	if err = q.follow(ctx); err != nil {
		return q, fmt.Errorf("open queue: %w", err)
	}
	if c.Dir != "" {
		q.running.Go(func() { q.keepEngine(background) })
	}
	return q, nil
}

// follow creates what the engine lacks, and then listens to it and repairs it
// until unfollow.
func (q *Queue) follow(ctx context.Context) error {
	var l layout
	var damage *check
	if e := q.engine.Load(); e != nil {
		damage = &check{js: q.js, engine: e, record: q.recover}
		if err := damage.started(ctx); err != nil {
			return err
		}
		q.nameDamage(damage.Damages)
		damage.Damages = nil
	}
	creating, cancel := context.WithTimeout(ctx, startTime) // by itself, the client gives up after 5 s
	defer cancel()
	err := q.whileStorable(creating, func(ctx context.Context) error {
		return untilPeersAreThere(ctx, func() (err error) {
			l, err = createLayout(ctx, q.js, q.replicas(), q.config.Lease)
			return err
		})
	})
	if err != nil {
		return err
	}
	if q.queue == nil { // those of an engine before know their names, not the engine
		q.layout = l
	}
	following, stop := context.WithCancel(context.Background())
	q.stopFollowing = stop
	for _, start := range []func(context.Context) error{q.followRecords, q.followEvents, q.followWorkers, q.followDrains} {
		if err := start(following); err != nil {
			return err
		}
	}
	if damage != nil {
		q.verifying.Store(true)
		q.following.Go(func() { q.verify(following, damage) })
	}
	q.following.Go(func() { q.repairs(following) })
	q.following.Go(func() { q.expires(following) })
	return nil
}

func (q *Queue) unfollow() {
	if q.stopFollowing != nil {
		q.stopFollowing()
	}
	q.following.Wait()
}

func (q *Queue) connect() (err error) {
	options := []nats.Option{
		nats.Name("memorymark server"), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { q.config.Log.Warn("queue", "error", err) }),
	}
	if q.config.URL == "" {
		e, err := startEngine(q.config, q.storage.heard)
		if err != nil {
			return err
		}
		q.engine.Store(e)
		q.conn, err = nats.Connect("", append(options, nats.InProcessServer(q))...)
		return err
	}
	if q.config.Credentials != "" {
		options = append(options, nats.UserCredentials(q.config.Credentials))
	}
	q.conn, err = nats.Connect(q.config.URL, options...)
	return err
}

func (q *Queue) replicas() int {
	switch {
	case q.config.Replicas != 0:
		return q.config.Replicas
	case q.conn.ConnectedClusterName() != "":
		return clusterReplicas
	default:
		return 1
	}
}

// InProcessConn connects this process to the engine that is there now.
func (q *Queue) InProcessConn() (net.Conn, error) { return q.engine.Load().server.InProcessConn() }

// Close stops the embedded engine or leaves the cluster. Jobs stay where they
// are; workers find them when the queue is open again.
func (q *Queue) Close() {
	q.stop()
	q.running.Wait()
	q.unfollow()
	if q.conn != nil {
		q.conn.Close()
	}
	if e := q.engine.Load(); e != nil {
		e.stop()
	}
}

// Ready reports whether the engine can be reached and stores what it is given,
// and whether the history is loaded.
func (q *Queue) Ready(ctx context.Context) error {
	if err := q.storage.check(); err != nil {
		return err
	}
	switch {
	case !q.conn.IsConnected():
		return fmt.Errorf("the queue has lost its connection (%v)", q.conn.Status())
	case !q.index.isLoaded():
		return errors.New("the history is being loaded")
	}
	return q.proveWrite(ctx)
}
