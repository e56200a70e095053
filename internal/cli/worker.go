package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memorymark/internal/bytesize"
	"memorymark/internal/job"
	"memorymark/internal/measure"
	"memorymark/internal/worker"
)

// workerFlags say where a worker finds its jobs and what it does them with.
type workerFlags struct {
	logFlags
	join      string
	tokenFile string
	ca        string
	slotFlags
	allowCode  bool
	codeMemory string
	name       string
	limit      time.Duration
	drain      time.Duration
}

// tokenVariable holds a worker's token. There is no flag for it: every user of
// a machine can read its command lines.
const tokenVariable = "MEMORYMARK_TOKEN"

func newWorker(e *env) *cobra.Command {
	f := &workerFlags{}
	c := &cobra.Command{
		Use:   "worker",
		Short: "Run jobs on this machine's GPUs for a server",
		Long: "Joins a server and runs its jobs, one at a time on each GPU. Without a GPU but with a\n" +
			"CUDA build of PyTorch it emulates any GPU, for jobs that ask for emulation. Its token,\n" +
			"from memorymark serve token create NAME --role worker, is in $" + tokenVariable + " or in a file.\n\n" +
			"With --allow-code it also runs Python code that users send with their analyses, on\n" +
			"emulated GPUs: as an unprivileged user, without network, without this machine's files, and\n" +
			"within --code-memory and --timeout.\n\n" +
			"When told to stop (Ctrl-C, SIGTERM) it takes no new jobs, gives running ones\n" +
			"--drain-timeout to finish, and returns the rest. If it is killed, its jobs go to other\n" +
			"workers.\n\n" +
			"Every flag can also be set by an environment variable, such as MEMORYMARK_JOIN, or in the\n" +
			"section worker of a YAML file:\n\n" +
			"  worker:\n" +
			"    join: http://server:5001",
		Example: "  memorymark worker --join http://server:5001\n" +
			"  memorymark worker --join https://server --token-file /etc/memorymark/token --drain-timeout 10m",
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), e) },
	}
	flags := c.Flags()
	flags.StringVar(&f.join, "join", "", "`URL` of the server, such as http://server:5001")
	flags.StringVar(&f.tokenFile, "token-file", "", "token `file` (default: $"+tokenVariable+")")
	flags.StringVar(&f.ca, "ca", "", "`file` with additional trusted certificates")
	f.addTo(flags)
	flags.BoolVar(&f.allowCode, "allow-code", false, "also run code that users send with their analyses, in a sandbox without network or files of this machine (Linux)")
	flags.StringVar(&f.codeMemory, "code-memory", "16GiB", "`memory` of this machine that such code may take")
	flags.StringVar(&f.name, "name", "", "`name` that the page shows for this machine (default: its host name)")
	flags.DurationVar(&f.limit, "job-timeout", worker.DefaultLimit, "`time` after which a job fails")
	flags.DurationVar(&f.drain, "drain-timeout", 5*time.Minute, "`time` that running jobs get to finish when the worker is told to stop")
	f.addLog(flags)
	addConfigFlag(c)
	return c
}

// joined is what is told about a worker that runs.
type joined struct {
	Worker string     `json:"worker"`
	Server string     `json:"server"`
	Cards  []job.Card `json:"cards"`
}

func (f *workerFlags) run(ctx context.Context, e *env) error {
	e.endsItself.Store(true)
	log, err := f.logger(e.stderr)
	if err != nil {
		return err
	}
	client, err := f.client()
	if err != nil {
		return err
	}
	slots, err := f.slots(ctx, client)
	if err != nil {
		return err
	}
	if f.allowCode {
		slot, err := f.codeSlot(ctx)
		if err != nil {
			return err
		}
		slots = append(slots, slot)
	}
	w, err := worker.Join(ctx, client, worker.Config{
		Slots: slots, Host: f.name, Version: currentVersion().Version, Limit: f.limit, Drain: f.drain, Log: log,
	})
	if err != nil {
		return badInput("check the address, and that the token is from memorymark serve token create NAME --role worker", "%s: %w", f.join, err)
	}
	told := joined{Worker: w.ID(), Server: f.join}
	for _, s := range slots {
		told.Cards = append(told.Cards, s.Card)
	}
	if err := e.print(told, told.write); err != nil {
		return err
	}
	err = w.Run(ctx)
	var refused *worker.RefusedError
	if errors.As(err, &refused) {
		return badInput("make a new one with memorymark serve token create NAME --role worker, and start the worker with it", "%s: %w", f.join, err)
	}
	return err
}

// codeSlot is for jobs that carry code.
func (f *workerFlags) codeSlot(ctx context.Context) (none worker.Slot, err error) {
	memory, err := bytesize.Parse(f.codeMemory)
	if err != nil || memory < bytesize.GiB {
		return none, badUsage("write it as --code-memory 16GiB", "--code-memory is %q; it must be an amount of memory, at least 1 GiB", f.codeMemory)
	}
	python, err := measure.FindPython(f.python, os.Getenv)
	if err != nil {
		return none, badInput("memorymark doctor says what is missing", "--allow-code: %w", err)
	}
	emulator, err := f.emulator(ctx)
	if err != nil {
		return none, badInput(fixOf(err), "--allow-code: %w", err)
	}
	slot, err := emulator.codeSlot(ctx, python, int64(memory))
	if err != nil {
		return none, badInput(fixOf(err), "--allow-code: %w", err)
	}
	return slot, nil
}

func (j joined) write(w io.Writer, _ int) error {
	var names []string
	for _, c := range j.Cards {
		names = append(names, c.Name)
	}
	_, err := fmt.Fprintf(w, "Worker %s joined %s with %s\n", j.Worker, j.Server, strings.Join(names, ", "))
	return err
}

func (f *workerFlags) token() (string, error) {
	if f.tokenFile == "" {
		return os.Getenv(tokenVariable), nil
	}
	data, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return "", badInput("", "--token-file: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// client is the server that the worker joins.
func (f *workerFlags) client() (*worker.Client, error) {
	switch scheme, _, _ := strings.Cut(f.join, "://"); {
	case f.join == "":
		return nil, badUsage("as --join http://server:5001", "missing --join")
	case scheme == "nats" || scheme == "tls":
		return nil, badUsage("write the address of memorymark serve, as --join http://server:5001", "--join is %q; workers speak HTTP with a server, and not with its NATS cluster", f.join)
	case scheme != "http" && scheme != "https":
		return nil, badUsage("write it as --join http://server:5001", "--join is %q; it must be an address", f.join)
	}
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// A connection by HTTP/2 is kept when a request on it gets no answer. These find
	// out in less than a lease that no one is there any more.
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second}
	if f.ca != "" {
		if transport.TLSClientConfig, err = trusting(f.ca); err != nil {
			return nil, err
		}
	}
	return &worker.Client{URL: f.join, Token: token, HTTP: &http.Client{Transport: transport}}, nil
}

// trusting trusts the certificates of a file, in addition to those of the machine.
func trusting(path string) (*tls.Config, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, badInput("", "--ca: %w", err)
	}
	trusted, err := x509.SystemCertPool()
	if err != nil {
		trusted = x509.NewCertPool()
	}
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, badInput("", "--ca %s holds no certificate", path)
	}
	return &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, nil
}
