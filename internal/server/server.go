// Package server offers MemoryMark over HTTP: the endpoints that existing
// clients know, the API under /v1 with its OpenAPI document, events, metrics,
// and the page. It decides who may ask and how an error looks; what is answered
// is computed in other packages.
//
// What a request passes on its way is listed in routes.go, and how requests of a
// route are treated in admission.go.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"memorymark/internal/admission"
	"memorymark/internal/gpu"
	"memorymark/internal/job"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/token"
)

// Options say what a server offers and to whom.
type Options struct {
	Version string
	Log     *slog.Logger

	// Jobs keeps the analyses. It must be there.
	Jobs *job.Queue
	// Snapshots keeps snapshots. It must be there.
	Snapshots *snapshotstore.Store
	// SnapshotMemory is about how many bytes snapshots may take that are being
	// looked at; 0 is 4 GiB.
	SnapshotMemory int64
	// Card finds this machine's card; nil if it is known to have none.
	Card func(context.Context) (*gpu.Card, bool)
	// Emulate runs steps on cards that are not there; nil if that is not wanted
	// here. It fails with a CannotEmulateError where that cannot be done.
	Emulate Emulate
	// Page is the built page; nil shows how to build it.
	Page fs.FS

	// Tokens are asked for when not nil; they must be where strangers can
	// reach the server.
	Tokens *token.Keeper
	// Hosts are the names by which the server may be addressed, without ports;
	// nil is any. On loopback they keep out pages whose name was made to point
	// here.
	Hosts []string
	// Origins may use the API from their pages: "https://lab.example", or "*".
	Origins []string
	// TLS says that clients come by TLS.
	TLS bool
	// Rate is how many requests a minute one address may make; 0 is any number.
	Rate int
}

// Server is a server. It is made by New.
type Server struct {
	opts    Options
	log     *slog.Logger
	metrics *metrics
	compute *compute
	library *library
	handler http.Handler

	emulations *emulations
	sessions   *sessions
	opened     *opened

	gates   [slotKinds]*admission.Gate
	parsing *admission.Gate // of long bodies

	machine    func() (*gpu.Card, bool) // waits until the card was looked for
	stall      time.Duration            // how long a client may stand still
	planBudget int64                    // what a plan may take

	running context.Context // ends when streams should
	stop    context.CancelFunc
}

// New returns a server that listens nowhere yet.
func New(opts Options) (*Server, error) {
	s := &Server{
		opts: opts, log: opts.Log, metrics: newMetrics(), stall: stallTime, planBudget: planBudget, emulations: newEmulations(opts.Emulate),
		sessions: newSessions(), opened: newOpened(), gates: newGates(), parsing: newParsing(),
	}
	s.running, s.stop = context.WithCancel(context.Background())
	s.metrics.registry.MustRegister(jobMetrics{opts.Jobs}, &accuracyMetrics{server: s})
	s.metrics.registry.MustRegister(s.storeMetrics()...)
	s.compute = newCompute(s.metrics)
	s.library = newLibrary(opts.Snapshots, cmp.Or(opts.SnapshotMemory, 4<<30))
	s.machine = sync.OnceValues(func() (*gpu.Card, bool) {
		if opts.Card == nil {
			return nil, false
		}
		return opts.Card(context.Background())
	})
	if opts.Tokens != nil {
		go s.endRevoked()
	}
	go s.machine() // nvidia-smi may take a second; no request should wait for it
	for _, origin := range opts.Origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); origin != "*" && err != nil {
			return nil, fmt.Errorf("origin %q: %w", origin, err)
		}
	}
	s.handler = s.routes()
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// letGo frees the memory of snapshots that no one looks at.
func (s *Server) letGo(ctx context.Context) {
	every := time.NewTicker(time.Minute)
	defer every.Stop()
	for {
		select {
		case now := <-every.C:
			if n := s.library.letGo(now); n > 0 {
				s.log.Info("snapshots evicted from memory", "count", n)
			}
		case <-ctx.Done():
			return
		}
	}
}

// expire removes old snapshots while the server runs.
func (s *Server) expire(ctx context.Context) {
	every := time.NewTicker(time.Hour)
	defer every.Stop()
	for {
		if n := s.opts.Snapshots.Expire(time.Now()); n > 0 {
			s.log.Info("old snapshots removed", "count", n)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// The limits of connections. There is none on how long an answer may take:
// streams of events last. Handlers set their own.
const (
	headerTime  = 10 * time.Second
	idleTime    = 2 * time.Minute
	headerBytes = 64 << 10
	// streams is how many requests one connection may have under way by HTTP/2: a
	// browser has a dozen.
	streams = 64
	// stopTime is how long requests may continue after the server was told to stop.
	stopTime = 15 * time.Second
)

func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerBytes,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: streams, WriteByteTimeout: stallTime, SendPingTimeout: idleTime, PingTimeout: headerTime},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // strangers' broken connections
	}
}

// Serve answers requests until the context ends, then lets those under way
// finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := s.httpServer()
	go s.expire(ctx)
	go s.letGo(ctx)
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.log.Info("stopping")
	s.stop()
	//nolint:contextcheck // the one given has ended
	ctx, stop := context.WithTimeout(context.Background(), stopTime)
	defer stop()
	if err := h.Shutdown(ctx); err != nil {
		return errors.Join(err, h.Close())
	}
	return nil
}
