package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"memorymark/internal/bytesize"
	"memorymark/internal/job"
	"memorymark/internal/lockfile"
	"memorymark/internal/measure"
	"memorymark/internal/server"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/token"
	"memorymark/web"
)

// lockData makes the data folder this server's alone: two that write to one
// would lose each other's analyses.
func (f *serveFlags) lockData(url string) (*lockfile.Lock, error) {
	return f.lock("use the server that runs, or give this one a folder of its own with --data", url)
}

// lock takes the data folder for this process, and notes the purpose there. The hint
// says what to do if a server has the folder.
func (f *serveFlags) lock(hint, what string) (*lockfile.Lock, error) {
	path := filepath.Join(f.data, "lock")
	lock, err := lockfile.Try(path)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, badUsage(hint, "--data %s: a server uses this folder (%s)", f.data, cmp.Or(lockfile.Note(path), "it has not said who it is"))
	}
	if err != nil {
		return nil, badInput("choose a writable folder with --data", "--data %s: %w", f.data, err)
	}
	return lock, lock.Note(fmt.Sprintf("process %d, %s", os.Getpid(), what))
}

// snapshots opens the folder of snapshots.
func (f *serveFlags) snapshots(log *slog.Logger) (*snapshotstore.Store, error) {
	opts := snapshotstore.Options{Age: f.keep}
	var err error
	if opts.MaxBytes, err = parseSize("--max-upload", f.maxUpload); err != nil {
		return nil, err
	}
	if opts.Quota, err = parseSize("--snapshot-quota", f.quota); err != nil {
		return nil, err
	}
	if f.keep <= 0 {
		return nil, badUsage("write it as --snapshot-age 720h", "--snapshot-age %v is not a valid time", f.keep)
	}
	s, err := snapshotstore.Open(filepath.Join(f.data, "snapshots"), opts)
	if err != nil {
		return nil, err
	}
	for _, d := range s.Damages() {
		log.Error("a snapshot was damaged on the disk", "what", d.String())
	}
	return s, nil
}

func parseSize(flag, text string) (int64, error) {
	n, err := bytesize.Parse(text)
	if err != nil || n <= 0 {
		return 0, badUsage("write it as "+flag+" 4GiB", "%s %q is not a size", flag, text)
	}
	return int64(n), nil
}

// jobs opens the engine that keeps the analyses.
func (f *serveFlags) jobs(ctx context.Context, log *slog.Logger) (*job.Queue, error) {
	c := job.Config{URL: f.nats, Credentials: f.natsCreds, Log: log}
	var err error
	if c.HistoryBytes, err = parseSize("--history-quota", f.history); err != nil {
		return nil, err
	}
	if f.nats == "" {
		c.Dir = filepath.Join(f.data, "jobs")
	}
	q, err := job.Open(ctx, c)
	if err != nil && f.nats != "" {
		return nil, badUsage("", "--nats: %w", err)
	}
	return q, err
}

// open listens, and returns where.
func (f *serveFlags) open(ctx context.Context) (net.Listener, string, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, "", badUsage("", "--tls-cert and --tls-key must be given together")
	}
	var config *tls.Config
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, "", badInput("", "--tls-cert: %w", err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, "", badUsage("a server may run there already; a second one needs its own --listen and its own --data", "--listen %s: the address is already in use", f.listen)
	}
	if err != nil {
		return nil, "", badUsage("write it as --listen 127.0.0.1:5001", "--listen: %w", err)
	}
	url := "http://" + l.Addr().String()
	if config != nil {
		l = tls.NewListener(l, config)
		url = "https" + strings.TrimPrefix(url, "http")
	}
	return l, url, nil
}

// strangersRate is how often an address may ask where anyone can.
const strangersRate = 1200

// options decides who may come in: on loopback this machine's users by its
// names, beyond it those with a token.
func (f *serveFlags) options(l net.Listener, log *slog.Logger) (server.Options, error) {
	opts := server.Options{
		Version: currentVersion().Version, Log: log, Card: measure.ThisCard, Page: web.Page(),
		Origins: f.origins, Rate: f.rate, TLS: f.cert != "",
	}
	if isLoopback(l.Addr()) {
		opts.Hosts = []string{"localhost", "127.0.0.1", "::1"}
		if host, _, err := net.SplitHostPort(f.listen); err == nil && !slices.Contains(opts.Hosts, host) {
			opts.Hosts = append(opts.Hosts, host)
		}
		return opts, nil
	}
	if opts.Rate == 0 {
		opts.Rate = strangersRate
	}
	tokens, err := token.NewKeeper(tokenFile(f.data))
	if err != nil {
		return opts, err
	}
	if n, err := tokens.Count(); err != nil || n == 0 {
		return opts, errors.Join(err, badUsage("create one with memorymark serve token create NAME; --listen 127.0.0.1:5001 needs none",
			"--listen %s is not a loopback address, so every client needs a token, and there is none in %s", f.listen, f.data))
	}
	opts.Tokens = tokens
	return opts, nil
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
