package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"memorymark/internal/bytesize"
	"memorymark/internal/job"
	"memorymark/internal/measure"
	"memorymark/internal/server"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/token"
	"memorymark/internal/worker"
	"memorymark/web"
)

// serveFlags say what the server offers and to whom.
type serveFlags struct {
	listen    string
	data      string
	origins   []string
	cert, key string
	rate      int
	nats      string
	natsCreds string
	maxUpload string
	quota     string
	keep      time.Duration
	logJSON   bool
	logLevel  string
}

func newServe(e *env) *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "The REST API and the page, for this machine or for many",
		Long: "Serves the API and the page. On loopback, which is the default, nobody needs a token.\n" +
			"Beyond it everybody does (memorymark token create NAME), and TLS is a good idea:\n" +
			"--tls-cert and --tls-key.\n\n" +
			"Flags can be given as MEMORYMARK_LISTEN and so on, and in the table [serve] of a file:\n\n" +
			"  [serve]\n" +
			"  listen = \"0.0.0.0:5001\"\n" +
			"  allow_origin = [\"https://lab.example\"]",
		Example: "  memorymark serve\n" +
			"  memorymark serve --listen 0.0.0.0:5001 --tls-cert cert.pem --tls-key key.pem",
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), e) },
	}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:5001", "`address` to listen on; port 0 takes a free one")
	addDataFlag(c, &f.data)
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "an `origin` whose pages may use the API, as https://lab.example, or *; may be repeated")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate, to serve by TLS")
	flags.StringVar(&f.key, "tls-key", "", "`file` with its key")
	flags.IntVar(&f.rate, "rate-limit", 0, "requests a minute of one address at most, `N`; 0 is 1200 beyond loopback and any number on it")
	flags.StringVar(&f.nats, "nats", "", "`URL` of an outside NATS cluster to keep analyses in (default: an engine of its own, in the data folder)")
	flags.StringVar(&f.natsCreds, "nats-credentials", "", "`file` with NATS credentials for it")
	flags.StringVar(&f.maxUpload, "max-upload", "4GiB", "`size` of the largest snapshot that is taken")
	flags.StringVar(&f.quota, "snapshot-quota", "20GiB", "`size` of all snapshots on the disk at most")
	flags.DurationVar(&f.keep, "snapshot-age", 90*24*time.Hour, "`time` after which a snapshot is removed")
	flags.BoolVar(&f.logJSON, "log-json", false, "write the log as JSON")
	flags.StringVar(&f.logLevel, "log-level", "info", "`level` of the log: debug, info, warn or error")
	addConfigFlag(c)
	return c
}

// addDataFlag adds --data to a command that keeps something.
func addDataFlag(c *cobra.Command, data *string) {
	c.Flags().StringVar(data, "data", dataFolder(), "`folder` for what is kept: history, snapshots, tokens")
	c.Flags().Lookup("data").DefValue = "$XDG_DATA_HOME/memorymark"
}

// dataFolder is where programs of a user keep what is theirs.
func dataFolder() string {
	if base := os.Getenv("XDG_DATA_HOME"); base != "" {
		return filepath.Join(base, "memorymark")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "share", "memorymark")
}

// tokenFile is where tokens are kept in a data folder.
func tokenFile(data string) string { return filepath.Join(data, "tokens.json") }

// serving is what is told about a server that runs.
type serving struct {
	URL string `json:"url"`
}

func (f *serveFlags) run(ctx context.Context, e *env) error {
	log, err := f.logger(e.stderr)
	if err != nil {
		return err
	}
	l, url, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // Serve has closed it already if it got that far
	opts, err := f.options(l, log)
	if err != nil {
		return err
	}
	jobs, err := f.jobs(ctx, opts.Tokens, log)
	if err != nil {
		return err
	}
	defer jobs.Close()
	opts.Jobs = jobs
	if opts.Snapshots, err = f.snapshots(); err != nil {
		return err
	}
	s, err := server.New(opts)
	if err != nil {
		return badUsage("", "%w", err)
	}
	err = e.print(serving{url}, func(w io.Writer, _ int) error {
		_, err := fmt.Fprintf(w, "MemoryMark is at %s\n", url)
		return err
	})
	if err != nil {
		return err
	}
	log.Info("listening", "url", url, "version", opts.Version, "token", opts.Tokens != nil, "data", f.data)
	return f.serve(ctx, s, l, opts)
}

// serve answers requests and works on what they ask for, until both are done.
func (f *serveFlags) serve(ctx context.Context, s *server.Server, l net.Listener, opts server.Options) error {
	link, err := opts.Jobs.Link(ctx)
	if err != nil {
		return err
	}
	defer link.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	working := make(chan error, 1)
	go func() {
		defer stop() // one without the other is of no use
		working <- worker.Run(ctx, link, worker.Config{
			Slots: predictionSlots(), Version: opts.Version, Drain: predictionTime, Log: opts.Log,
		})
	}()
	err = s.Serve(ctx, l)
	stop()
	return errors.Join(err, <-working)
}

// snapshots opens the folder of snapshots.
func (f *serveFlags) snapshots() (*snapshotstore.Store, error) {
	opts := snapshotstore.Options{Age: f.keep}
	for _, size := range []struct {
		flag, text string
		into       *int64
	}{{"--max-upload", f.maxUpload, &opts.MaxBytes}, {"--snapshot-quota", f.quota, &opts.Quota}} {
		n, err := bytesize.Parse(size.text)
		if err != nil || n <= 0 {
			return nil, badUsage("write it as "+size.flag+" 4GiB", "%s %q is not a size", size.flag, size.text)
		}
		*size.into = int64(n)
	}
	if f.keep <= 0 {
		return nil, badUsage("write it as --snapshot-age 720h", "--snapshot-age %v is no time", f.keep)
	}
	return snapshotstore.Open(filepath.Join(f.data, "snapshots"), opts)
}

// jobs opens the engine that keeps the analyses.
func (f *serveFlags) jobs(ctx context.Context, tokens *token.Keeper, log *slog.Logger) (*job.Queue, error) {
	c := job.Config{URL: f.nats, Credentials: f.natsCreds, Log: log, Authorize: func(secret string) bool {
		if tokens == nil {
			return true // on loopback everybody who can come may
		}
		t, ok, err := tokens.Find(secret)
		return err == nil && ok && t.Role == token.Worker
	}}
	if f.nats == "" {
		c.Dir = filepath.Join(f.data, "jobs")
	}
	q, err := job.Open(ctx, c)
	if err != nil && f.nats != "" {
		return nil, badUsage("", "--nats: %w", err)
	}
	return q, err
}

func (f *serveFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, badUsage("it can be debug, info, warn or error", "--log-level: %q is no level", f.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	if f.logJSON {
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}

// open listens, and returns where.
func (f *serveFlags) open(ctx context.Context) (net.Listener, string, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, "", badUsage("", "--tls-cert and --tls-key need each other")
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
		return nil, "", badUsage("take another, as --listen 127.0.0.1:5002", "--listen %s: something else listens there", f.listen)
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

// strangersRate is how often an address may ask where anybody can.
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
		return opts, errors.Join(err, badUsage("memorymark token create NAME makes one; --listen 127.0.0.1:5001 needs none",
			"--listen %s is beyond loopback, where everybody needs a token, and there is none in %s", f.listen, f.data))
	}
	opts.Tokens = tokens
	return opts, nil
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
