package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"memorymark/internal/server"
	"memorymark/internal/worker"
)

// serveFlags say what the server offers and to whom.
type serveFlags struct {
	slotFlags
	noMeasuring bool
	listen      string
	data        string
	origins     []string
	cert, key   string
	rate        int
	nats        string
	natsCreds   string
	maxUpload   string
	quota       string
	keep        time.Duration
	logFlags
}

func newServe(e *env) *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "The REST API and the page, for this machine or for many",
		Long: "Serves the API and the page. On loopback, which is the default, nobody needs a token.\n" +
			"Beyond it everybody does (memorymark token create NAME), and TLS is a good idea:\n" +
			"--tls-cert and --tls-key.\n\n" +
			"It predicts by itself, and measures on this machine's GPUs, if it has any, or on what\n" +
			"--card and --device say. It emulates cards if its Python has a CUDA build of PyTorch,\n" +
			"which needs no GPU. memorymark worker brings other machines.\n\n" +
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
	f.addTo(flags)
	flags.BoolVar(&f.noMeasuring, "no-measuring", false, "only predict: leave this machine's GPUs alone, and emulate none")
	f.addLog(flags)
	addConfigFlag(c)
	return c
}

// addDataFlag adds --data to a command that keeps something.
func addDataFlag(c *cobra.Command, data *string) {
	c.Flags().StringVar(data, "data", dataFolder(), "`folder` for what is kept: history, snapshots, tokens")
	c.Flags().Lookup("data").DefValue = "$XDG_DATA_HOME/memorymark"
}

// checkData refuses "", which would be the folder where the program happens to
// run.
func checkData(folder string) error {
	if folder == "" {
		return badUsage("give one, as --data /var/lib/memorymark", "there is no folder to keep things in: neither XDG_DATA_HOME nor HOME is set")
	}
	return nil
}

// dataFolder is where programs of a user keep what is theirs, "" if they have
// no home.
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
	return f.serve(ctx, e, func(_ *server.Server, url string) error {
		return e.print(serving{url}, func(w io.Writer, _ int) error {
			_, err := fmt.Fprintf(w, "MemoryMark is at %s\n", url)
			return err
		})
	})
}

// serve opens everything, tells that it is there, and answers until the
// context ends.
func (f *serveFlags) serve(ctx context.Context, e *env, tell func(s *server.Server, url string) error) error {
	if err := checkData(f.data); err != nil {
		return err
	}
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
	here := f.emulation(ctx)
	opts.Emulate = here.answer()
	if opts.Snapshots, err = f.snapshots(); err != nil {
		return err
	}
	if opts.Jobs, err = f.jobs(ctx, opts.Tokens, log); err != nil {
		return err
	}
	defer opts.Jobs.Close()
	s, err := server.New(opts)
	if err != nil {
		return badUsage("", "%w", err)
	}
	if err := tell(s, url); err != nil {
		return err
	}
	log.Info("listening", "url", url, "version", opts.Version, "token", opts.Tokens != nil, "data", f.data)
	return f.answerAndWork(ctx, s, l, url, opts, here)
}

// answerAndWork answers requests and works on what they ask for, until all of
// it is done.
func (f *serveFlags) answerAndWork(ctx context.Context, s *server.Server, l net.Listener, url string, opts server.Options, emulation findEmulator) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	working := make(chan error, 3)
	go func() {
		defer stop() // one without the other is of no use
		working <- work(ctx, opts, predictionSlots(), predictionTime)
	}()
	go func() { working <- f.measureHere(ctx, url, opts) }()
	go func() { working <- emulation.work(ctx, opts) }()
	err := s.Serve(ctx, l)
	stop()
	return errors.Join(err, <-working, <-working, <-working)
}

// work runs a worker of the server's own.
func work(ctx context.Context, opts server.Options, slots []worker.Slot, drain time.Duration) error {
	link, err := opts.Jobs.Link(ctx)
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // told to end before it had begun
	}
	if err != nil {
		return err
	}
	defer link.Close()
	return worker.Run(ctx, link, worker.Config{Slots: slots, Version: opts.Version, Drain: drain, Resident: true, Log: opts.Log})
}

// measureHere measures on this machine's cards. A server whose card cannot be
// used is one without: it says why and goes on.
func (f *serveFlags) measureHere(ctx context.Context, url string, opts server.Options) error {
	if f.noMeasuring || !f.here(ctx) {
		return nil
	}
	var upload *worker.Uploader
	if opts.Tokens == nil && f.cert == "" { // only then can it call itself without ado
		upload = &worker.Uploader{URL: url}
	}
	slots, err := f.slots(ctx, upload)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the server ends before it has looked
	}
	if err != nil {
		opts.Log.Warn("this machine's card is not measured on", "reason", err)
		return nil
	}
	return work(ctx, opts, slots, 0)
}
