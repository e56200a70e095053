package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memorymark/internal/gpu"
	"memorymark/internal/job"
	"memorymark/internal/measure"
	"memorymark/internal/worker"
)

// workerFlags say where a worker finds its jobs and what it does them with.
type workerFlags struct {
	logFlags
	join        string
	tokenFile   string
	credentials string
	ca          string
	server      string
	cards       []string
	device      string
	python      string
	name        string
	probe       time.Duration
	limit       time.Duration
	drain       time.Duration
}

// tokenVariable holds a worker's token. There is no flag for it: every user of
// a machine can read its command lines.
const tokenVariable = "MEMORYMARK_TOKEN"

func newWorker(e *env) *cobra.Command {
	f := &workerFlags{}
	c := &cobra.Command{
		Use:   "worker",
		Short: "Measure on this machine's GPUs for a server",
		Long: "Joins a server and measures for it, one job at a time on each GPU. Its token, made by\n" +
			"memorymark token create NAME --role worker, is in $" + tokenVariable + " or in a file.\n\n" +
			"Told to end (Ctrl-C, SIGTERM), it takes no more jobs, lets those that run go on for\n" +
			"--drain-timeout, and gives back what is left. If it is killed, its jobs go to others.\n\n" +
			"Flags can be given as MEMORYMARK_JOIN and so on, and in the table [worker] of a file.",
		Example: "  memorymark worker --join http://server:5001\n" +
			"  memorymark worker --join https://server --token-file /etc/memorymark/token --drain-timeout 10m",
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), e) },
	}
	flags := c.Flags()
	flags.StringVar(&f.join, "join", "", "`URL` of the server, as http://server:5001; or of a NATS cluster, as nats://a:4222,nats://b:4222")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the token (default: $"+tokenVariable+")")
	flags.StringVar(&f.credentials, "nats-credentials", "", "`file` with NATS credentials, for a cluster")
	flags.StringVar(&f.ca, "ca", "", "`file` with certificates to trust beside the machine's")
	flags.StringVar(&f.server, "upload", "", "`URL` of the server to upload snapshots to, with --join nats://… (default: --join)")
	flags.StringSliceVar(&f.cards, "card", nil, "take jobs of this card, an `ID` of memorymark gpus; may be repeated (default: the GPUs that PyTorch finds)")
	flags.StringVar(&f.device, "device", "", "`what` to measure on with --card: cuda:1, mps or cpu (default: the first cards)")
	flags.StringVar(&f.python, "python", "", "the `Python` with PyTorch (default: $MEMORYMARK_PYTHON, the virtual environment, python3)")
	flags.StringVar(&f.name, "name", "", "`name` of this machine on the page (default: its host name)")
	flags.DurationVar(&f.probe, "timeout", measure.DefaultTimeout, "`time` after which a probe is killed")
	flags.DurationVar(&f.limit, "job-timeout", worker.DefaultLimit, "`time` after which a job is stopped and has failed")
	flags.DurationVar(&f.drain, "drain-timeout", 5*time.Minute, "`time` that running jobs may take when the worker is told to end")
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
	log, err := f.logger(e.stderr)
	if err != nil {
		return err
	}
	if f.join == "" {
		return badUsage("as --join http://server:5001", "memorymark worker: missing --join")
	}
	token, err := f.token()
	if err != nil {
		return err
	}
	slots, err := f.slots(ctx, token)
	if err != nil {
		return err
	}
	link, err := job.Join(ctx, job.JoinConfig{URL: f.join, Token: token, Credentials: f.credentials, CA: f.ca, Log: log})
	if err != nil {
		return badInput("is the server there, and is the token one of memorymark token create NAME --role worker?", "%w", err)
	}
	defer link.Close()
	told := joined{Worker: link.ID(), Server: f.join}
	for _, s := range slots {
		told.Cards = append(told.Cards, s.Card)
	}
	if err := e.print(told, told.write); err != nil {
		return err
	}
	return worker.Run(ctx, link, worker.Config{
		Slots: slots, Host: f.name, Version: currentVersion().Version, Limit: f.limit, Drain: f.drain, Log: log,
	})
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

// slots are the cards of this machine, as PyTorch finds them, or those that
// were named.
func (f *workerFlags) slots(ctx context.Context, token string) ([]worker.Slot, error) {
	python, err := measure.FindPython(f.python, os.Getenv)
	if err != nil {
		return nil, badInput("memorymark doctor says what is missing", "%w", err)
	}
	m := measurer{python: python, timeout: f.probe}
	if m.upload, err = f.uploader(token); err != nil {
		return nil, err
	}
	if len(f.cards) > 0 {
		return f.namedSlots(m)
	}
	if f.device != "" {
		return nil, badUsage("name the card that it stands for, as --card a10", "--device needs --card")
	}
	found, err := measure.Inspect(ctx, python)
	if err != nil {
		return nil, badInput("memorymark doctor says what is missing", "%w", err)
	}
	var slots []worker.Slot
	for i, c := range found.Cards {
		card, err := gpu.Find(c.Name)
		if err != nil {
			return nil, badInput("name the card that it is like, as --card a10", "%w", err)
		}
		slots = append(slots, m.slot(card, fmt.Sprintf("cuda:%d", i)))
	}
	if len(slots) == 0 {
		reason := cmp.Or(found.CUDAError, found.TorchError, "PyTorch finds no GPU")
		return nil, badInput("memorymark doctor says what is missing", "nothing to measure on: %s", reason)
	}
	return slots, nil
}

// namedSlots are the cards that the user named.
func (f *workerFlags) namedSlots(m measurer) ([]worker.Slot, error) {
	if f.device != "" && len(f.cards) > 1 {
		return nil, badUsage("start a worker for each", "--device is for one --card")
	}
	var slots []worker.Slot
	for i, name := range f.cards {
		card, err := gpu.Find(name)
		if err != nil {
			return nil, badUsage("memorymark gpus lists them", "--card: %w", err)
		}
		slots = append(slots, m.slot(card, cmp.Or(f.device, fmt.Sprintf("cuda:%d", i))))
	}
	return slots, nil
}

// uploader is where snapshots go, nil if that is not known.
func (f *workerFlags) uploader(token string) (*worker.Uploader, error) {
	server := cmp.Or(f.server, f.join)
	if !strings.HasPrefix(server, "http://") && !strings.HasPrefix(server, "https://") {
		return nil, nil
	}
	out := &worker.Uploader{URL: server, Token: token}
	if f.ca == "" {
		return out, nil
	}
	pem, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, badInput("", "--ca: %w", err)
	}
	trusted, err := x509.SystemCertPool()
	if err != nil {
		trusted = x509.NewCertPool()
	}
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, badInput("", "--ca %s holds no certificate", f.ca)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	out.Client = &http.Client{Transport: transport}
	return out, nil
}
