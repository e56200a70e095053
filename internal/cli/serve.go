package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
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
	history     string
	keep        time.Duration
	verify      bool
	logFlags
}

func newServe(e *env) *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the REST API and the web page",
		Long: "Serves the API and the web page. By default it listens on loopback and needs no token.\n" +
			"On any other address every request needs one (memorymark serve token create NAME); use TLS\n" +
			"there: --tls-cert and --tls-key.\n\n" +
			"The server predicts by itself, and measures on this machine's GPUs, if it has any, or on\n" +
			"what --card and --device say. If its Python has a CUDA build of PyTorch, which needs no\n" +
			"GPU, it also emulates. memorymark worker adds other machines.\n\n" +
			"Every flag can also be set by an environment variable, such as MEMORYMARK_LISTEN, or in\n" +
			"the section serve of a YAML file:\n\n" +
			"  serve:\n" +
			"    listen: 0.0.0.0:5001\n" +
			"    allow_origin: [https://lab.example]",
		Example: "  memorymark serve\n" +
			"  memorymark serve --listen 0.0.0.0:5001 --tls-cert cert.pem --tls-key key.pem",
		Annotations: map[string]string{"alone": "memorymark serve [flags]"}, // it also works without COMMAND
		Args:        exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.verify {
				return f.verifyData(e)
			}
			return f.run(c.Context(), e)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:5001", "`address` to listen on; port 0 picks a free port")
	addDataFlag(c, &f.data)
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "`origin` whose pages may use the API, such as https://lab.example, or *; may be repeated")
	flags.StringVar(&f.cert, "tls-cert", "", "certificate `file` for TLS")
	flags.StringVar(&f.key, "tls-key", "", "private key `file` for TLS")
	flags.IntVar(&f.rate, "rate-limit", 0, "maximum requests per minute from one address, `N` (default: 1200, no limit on loopback)")
	flags.StringVar(&f.nats, "nats", "", "`URL` of an external NATS cluster that keeps the analyses (default: an embedded one, in the data folder)")
	flags.StringVar(&f.natsCreds, "nats-credentials", "", "credentials `file` for that cluster")
	flags.StringVar(&f.maxUpload, "max-upload", "4GiB", "maximum `size` of an uploaded snapshot")
	flags.StringVar(&f.history, "history-quota", "10GiB", "maximum `size` of the history; the oldest analyses are forgotten")
	flags.StringVar(&f.quota, "snapshot-quota", "20GiB", "maximum `size` of all stored snapshots")
	flags.DurationVar(&f.keep, "snapshot-age", 90*24*time.Hour, "`time` after which a stored snapshot is deleted")
	flags.BoolVar(&f.verify, "verify", false, "check everything in the data folder against its checksums and exit, without serving")
	f.addTo(flags)
	flags.BoolVar(&f.noMeasuring, "no-measuring", false, "only predict: do not use this machine's GPUs, and do not emulate any")
	f.addLog(flags)
	addConfigFlag(c)
	c.AddCommand(dataCommands(e)...)
	return c
}

// addDataFlag adds --data to a command that keeps something.
func addDataFlag(c *cobra.Command, data *string) {
	c.Flags().StringVar(data, "data", dataFolder(), "`folder` for history, snapshots and tokens")
	c.Flags().Lookup("data").DefValue = "$XDG_DATA_HOME/memorymark"
}

// checkData refuses "", which would be the folder where the program happens to
// run.
func checkData(folder string) error {
	if folder == "" {
		return badUsage("set one, such as --data /var/lib/memorymark", "there is no data folder: neither XDG_DATA_HOME nor HOME is set")
	}
	return nil
}

// dataFolder is where programs of a user keep what is theirs, "" if they have
// no home directory.
func dataFolder() string {
	if base := os.Getenv("XDG_DATA_HOME"); base != "" {
		return filepath.Join(base, "memorymark")
	}
	directory, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(directory, ".local", "share", "memorymark")
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

// ballastBytes are never touched, so that they take address space and no memory.
// Go's collector runs when the heap has doubled, which a small one does with
// every few predictions.
const ballastBytes = 64 << 20

// serve opens everything, tells that it is there, and answers until the
// context ends.
func (f *serveFlags) serve(ctx context.Context, e *env, tell func(s *server.Server, url string) error) error {
	e.endsItself.Store(true)
	defer runtime.KeepAlive(make([]byte, ballastBytes))
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
	lock, err := f.lockData(url)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	opts, err := f.options(l, log)
	if err != nil {
		return err
	}
	here := f.emulation(ctx)
	opts.Emulate = here.answer()
	if opts.Snapshots, err = f.snapshots(log); err != nil {
		return err
	}
	if opts.Jobs, err = f.jobs(ctx, log); err != nil {
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
	w, err := worker.Join(ctx, worker.Local{Queue: opts.Jobs}, worker.Config{Slots: slots, Version: opts.Version, Drain: drain, Resident: true, Log: opts.Log})
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // told to end before it had begun
	}
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// measureHere measures on this machine's cards. A server whose card cannot be
// used is one without: it says why and continues.
func (f *serveFlags) measureHere(ctx context.Context, url string, opts server.Options) error {
	if f.noMeasuring || !f.here(ctx) {
		return nil
	}
	var upload *worker.Client
	if opts.Tokens == nil && f.cert == "" { // only then can it call itself without ado
		upload = &worker.Client{URL: url}
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
