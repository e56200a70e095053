package job

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// engine is a NATS server in this process.
type engine struct {
	server *server.Server
	secret string // lets this process in, and nobody else
	listen string // where workers reach it directly, "" if they do not
	door   *doorkeeper
}

// The limits of workers. One has a connection, and a few subscriptions for each
// card.
const (
	maxConnections   = 4096
	maxSubscriptions = 1024
)

// startTime is how long a server may take to read its files, or to make them.
const startTime = time.Minute

func startEngine(c Config, secret string, heard func(text string)) (*engine, error) {
	door := &doorkeeper{secret: secret, authorize: c.Authorize, guests: make(map[uint64]string)}
	e := &engine{secret: secret, door: door}
	options := &server.Options{
		ServerName: "memorymark", JetStream: true, StoreDir: c.Dir,
		SyncAlways: !c.unsynced, // what is acknowledged survives a power failure
		MaxPayload: MaxPayload + MaxPayload/2,
		// What is there of the disk is looked at when something is stored, not once.
		JetStreamMaxStore: math.MaxInt64 / 2,
		NoLog:             true, NoSigs: true, DisableJetStreamBanner: true,
		DontListen: c.Listen == "",
		MaxConn:    maxConnections, MaxSubs: maxSubscriptions,
		// A loopback listener of websockets, which Handler passes workers on to.
		// A page in this machine's browser could find it; workers send no origin.
		Websocket: server.WebsocketOpts{
			Host: "127.0.0.1", Port: server.RANDOM_PORT, NoTLS: true, AllowedOrigins: []string{"https://nobody.invalid"},
		},
		CustomClientAuthentication: door,
	}
	if c.Authorize == nil {
		options.Websocket = server.WebsocketOpts{}
	}
	if c.Listen != "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return nil, fmt.Errorf("listen for workers on %q: %w", c.Listen, err)
		}
		if options.Port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("listen for workers on %q: %w", c.Listen, err)
		}
		if options.Port == 0 {
			options.Port = server.RANDOM_PORT
		}
		options.Host = host
		options.TLSConfig, options.TLS = c.TLS, c.TLS != nil
	}
	var err error
	if e.server, err = server.NewServer(options); err != nil {
		return nil, err
	}
	e.server.SetLoggerV2(&engineLog{c.Log, heard}, false, false, false)
	e.server.Start()
	if !e.server.ReadyForConnections(startTime) {
		e.stop()
		return nil, fmt.Errorf("the engine on %s did not start; is another process using that folder?", c.Dir)
	}
	if !e.server.JetStreamEnabled() {
		e.stop()
		return nil, fmt.Errorf("the engine cannot use %s; see the log", c.Dir)
	}
	if c.Listen != "" {
		e.listen = e.server.Addr().String()
	}
	return e, nil
}

func (e *engine) stop() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// ListenAddr returns where workers reach the embedded engine directly, nil if
// they do not.
func (q *Queue) ListenAddr() net.Addr {
	if q.config.Listen == "" {
		return nil
	}
	return q.engine.Load().server.Addr()
}

// Handler passes workers that come by HTTP on to the embedded engine, so that
// one port is enough. It answers 404 if there is no embedded engine or nobody
// may join it. Workers are let in by their token, which the engine asks for.
func (q *Queue) Handler() http.Handler {
	if q.engine.Load() == nil || q.config.Authorize == nil {
		return http.NotFoundHandler()
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			address := strings.TrimPrefix(q.engine.Load().server.WebsocketURL(), "ws://")
			r.SetURL(&url.URL{Scheme: "http", Host: address})
			r.Out.URL.Path = "/"
			r.Out.Host = address
			r.Out.Header.Del("Origin")
			r.Out.Header.Del("Sec-Websocket-Extensions") // what is compressed cannot be followed
		},
		ModifyResponse: func(r *http.Response) error {
			if both, ok := r.Body.(io.ReadWriteCloser); ok {
				r.Body = &enginesEnd{ReadWriteCloser: both}
			}
			return nil
		},
	}
}

// enginesEnd is the engine's end of a worker's connection. When the engine closes
// it, as it does with who shows no token in time, the worker's end is closed too:
// after a mere end of file the proxy would wait until the other closes it. So it is when
// the worker sends what is not a worker's to send.
type enginesEnd struct {
	io.ReadWriteCloser
	wire wire
}

var errEngineClosed = errors.New("the engine closed the connection")

func (e *enginesEnd) Read(data []byte) (int, error) {
	n, err := e.ReadWriteCloser.Read(data)
	if errors.Is(err, io.EOF) {
		err = errEngineClosed
	}
	return n, err
}

func (e *enginesEnd) Write(data []byte) (int, error) {
	if err := e.wire.follow(data); err != nil {
		return 0, err
	}
	return e.ReadWriteCloser.Write(data)
}

const (
	ownerName  = "memorymark"
	workerName = "worker-" // and the worker's id
)

// doorkeeper lets in this process, with all rights, and workers that show a
// token, with a worker's rights.
type doorkeeper struct {
	secret    string
	authorize func(token string) bool

	mu     sync.Mutex
	guests map[uint64]string // the tokens of workers that were let in, by their connections
}

// Check implements server.Authentication.
func (d *doorkeeper) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	if o.Username == ownerName {
		return subtle.ConstantTimeCompare([]byte(o.Password), []byte(d.secret)) == 1
	}
	worker, err := workerID(o.Username)
	if err != nil || d.authorize == nil || !d.authorize(o.Password) || !ownWorkerID(worker, o.Password) {
		return false
	}
	d.mu.Lock()
	d.guests[c.GetID()] = o.Password
	d.mu.Unlock()
	publish, subscribe := WorkerRights(worker)
	c.RegisterUser(&server.User{Username: o.Username, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: subscribe},
	}})
	return true
}

// evictEvery is how long a token that was revoked may still be of use.
const evictEvery = 250 * time.Millisecond

// evict ends the connections of workers whose tokens were revoked.
func (e *engine) evict() {
	d := e.door
	d.mu.Lock()
	defer d.mu.Unlock()
	for connection, token := range d.guests {
		switch {
		case e.server.GetClient(connection) == nil:
			delete(d.guests, connection)
		case !d.authorize(token):
			_ = e.server.DisconnectClientByID(connection) // one that is gone is gone
			delete(d.guests, connection)
		}
	}
}

// evicting does so until the context ends.
func (q *Queue) evicting(ctx context.Context) {
	every := time.NewTicker(evictEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			q.engine.Load().evict()
		case <-ctx.Done():
			return
		}
	}
}

var errWorkerName = errors.New("not a worker's name")

// workerID returns the id in a worker's user name.
func workerID(user string) (string, error) {
	if len(user) <= len(workerName) || user[:len(workerName)] != workerName {
		return "", errWorkerName
	}
	worker := user[len(workerName):]
	if _, ok := parseID(worker); !ok {
		return "", errWorkerName
	}
	return worker, nil
}

// WorkerRights returns the subjects that a worker may publish and subscribe
// to: take jobs and acknowledge them, read a record whose id it was given, say
// what happens, report, and say that it is there. It writes no record and no
// result: a server does, if a report is the worker's to make. It cannot submit,
// list, watch or delete jobs, nor change what the engine holds them in, nor speak
// for other workers, drain them or hear what they hear.
func WorkerRights(worker string) (publish, subscribe []string) {
	publish = []string{
		"$JS.API.CONSUMER.INFO." + queueStream + ".*",
		"$JS.API.CONSUMER.MSG.NEXT." + queueStream + ".*",
		"$JS.ACK." + queueStream + ".>",
		eventSubject + "*",
		reportSubject + worker,
	}
	for _, bucket := range []string{recordBucket, workerBucket} {
		publish = append(publish, streamInfo+"KV_"+bucket, "$JS.API.DIRECT.GET.KV_"+bucket+".$KV."+bucket+".*")
	}
	publish = append(publish, "$KV."+workerBucket+"."+worker)
	subscribe = []string{inboxOf(worker) + ".>", offerSubject + "*", cancelSubject + worker, drainSubject + worker}
	return publish, subscribe
}

// inboxOf is where answers to a worker go. Others may not listen there.
func inboxOf(worker string) string { return "_INBOX." + worker }

// engineLog passes the engine's warnings on.
type engineLog struct {
	log   *slog.Logger
	heard func(text string) // gets every warning and error
}

func (l *engineLog) say(level slog.Level, format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if strings.HasPrefix(text, "Websocket not configured with TLS") {
		return // it is on loopback, behind Handler; who worries is told by --tls-cert
	}
	if level >= slog.LevelWarn {
		l.heard(text)
	}
	l.log.Log(context.Background(), level, text, "from", "engine")
}

func (l *engineLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v...) }
func (l *engineLog) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v...) }
func (l *engineLog) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v...) }
func (l *engineLog) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v...) }
func (l *engineLog) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v...) }
func (l *engineLog) Tracef(format string, v ...any)  { l.say(slog.LevelDebug, format, v...) }
