package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/analysis"
	"memorymark/internal/emulate"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/report"
	"memorymark/internal/request"
	"memorymark/internal/workload"
)

// requestCard is the card of a request without one: it must be large, since the
// memory of the job is what is asked.
const requestCard = "h100"

// scriptSteps is how many steps of a script are run: PyTorch reserves the most by
// the second or third.
const scriptSteps = 3

type requestFlags struct {
	*workloadFlags
	*engineFlags
	format string
}

func newRequest(e *env) *cobra.Command {
	f := requestFlags{engineFlags: &engineFlags{engine: evidence.Auto, device: engine.AutoDevice}}
	c := &cobra.Command{
		Use:   "request MODEL [SCRIPT ARGUMENTS...]",
		Short: "Print what a scheduler needs to place a training job",
		Long: "Prints the GPU memory that a job needs, including the CUDA context and what the driver\n" +
			"keeps, as a scheduler wants it: Kubernetes' node affinity or a DRA claim, HAMi and KAI for\n" +
			"shared GPUs, Slurm, SkyPilot. --for prints one of them alone.\n\n" +
			"MODEL is what predict takes. A script, train.py without a function make, is run on an\n" +
			fmt.Sprintf("emulated GPU for %d steps, with the arguments after it; your PyTorch must be a CUDA build.\n\n", scriptSteps) +
			"The memory is found for the card of --gpu (default: this machine's, else " + requestCard + "). On other\n" +
			"cards it differs by what their libraries need, a few percent. The exit code is 4 if the job\n" +
			"does not fit that card.",
		Example: "  memorymark request train.py --for kubernetes\n" +
			"  memorymark request llama-3.1-8b --lora 16 --precision bf16 --sequence 2048 --for slurm\n" +
			"  memorymark request --gpu a100-80gb train.py -- --epochs 1",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return badUsage(seeHelp(c), "missing MODEL")
			}
			return nil
		},
	}
	f.workloadFlags = e.addWorkloadFlags(c)
	f.addPython(c.Flags())
	c.Flags().StringVar(&f.format, "for", "", "print only what this `scheduler` needs: "+strings.Join(request.Names(), ", "))
	c.RunE = func(c *cobra.Command, args []string) error {
		defer f.close()
		return f.run(c, e, args)
	}
	return c
}

func (f *requestFlags) run(c *cobra.Command, e *env, args []string) error {
	if _, ok := request.Find(f.format); f.format != "" && !ok {
		return badUsage("", "--for is %q; it must be one of %s", f.format, strings.Join(request.Names(), ", "))
	}
	if err := f.start(c.Context(), e); err != nil {
		return err
	}
	need, why, err := f.need(c, e, args)
	switch {
	case err != nil:
		return err
	case need == nil:
		return e.printNo(errOutOfMemory, map[string]any{"fits": false, "reason": why}, report.NoRequest(why).Write)
	}
	return e.print(need, report.Request{Need: need, Format: f.format}.Write)
}

// need finds what a job needs, or why it does not fit the card.
func (f *requestFlags) need(c *cobra.Command, e *env, args []string) (*request.Need, string, error) {
	if isScript(args[0]) {
		return f.ofScript(c.Context(), e, args)
	}
	if len(args) > 1 {
		hint := seeHelp(c)
		if strings.HasSuffix(args[1], ".py") {
			hint = "give the script alone, without " + args[0] + ": " + c.CommandPath() + " " + args[1]
		}
		return nil, "", badUsage(hint, "unexpected argument %q", args[1])
	}
	w, user, err := f.subject(c.Context(), e, f.draft(workload.Draft{}, args))
	if err != nil {
		return nil, "", badWorkload(c, err)
	}
	card, err := e.cardOr(c.Context(), w.GPU, requestCard)
	if err != nil {
		return nil, "", err
	}
	name, gpus := args[0], int64(1)
	if w.Parallel != nil {
		gpus = w.Parallel.GPUs
	}
	if f.emulates(w, user) {
		found, err := f.runner.Emulate(c.Context(), analysis.Request{Workload: w, Card: card}, user, "")
		switch {
		case err != nil:
			return nil, "", explainUnable(err, user)
		case !found.Fits:
			return nil, doesNotFit(card), nil
		}
		return request.New(name, evidence.Emulated, card, gpus, found.PeakReserved()), "", nil
	}
	p, err := predict.Predict(w, card, predict.Options{Budget: workOf(c.Context())})
	switch {
	case err != nil:
		return nil, "", badInput("", "%w", err)
	case !p.Fits:
		return nil, doesNotFit(card), nil
	}
	return request.New(name, evidence.Predicted, card, gpus, p.PeakReserved()), "", nil
}

func doesNotFit(card *gpu.Card) string {
	return fmt.Sprintf("the job does not fit %s; memorymark fit says what to change, and --gpu names a larger card", card.Name)
}

// definesMake matches the function of a file that predict and analyze call.
var definesMake = regexp.MustCompile(`(?m)^(?:def make\b|make\s*=)`)

// isScript reports whether a name is that of a program to be run as it is.
func isScript(name string) bool {
	if filepath.Ext(name) != ".py" {
		return false
	}
	source, err := os.ReadFile(name)
	return err == nil && !definesMake.Match(source)
}

// ofScript runs the first steps of a script on an emulated GPU.
func (f *requestFlags) ofScript(ctx context.Context, e *env, args []string) (*request.Need, string, error) {
	d := f.draft(workload.Draft{}, nil)
	card, err := e.cardOr(ctx, d.Text("gpu"), requestCard)
	if err != nil {
		return nil, "", err
	}
	gpus := 1
	if text, given := f.given("gpus"); given {
		if _, err := fmt.Sscan(text, &gpus); err != nil || gpus < 1 || gpus > emulate.MaxGPUs {
			return nil, "", badUsage("", "--gpus is %q; it must be from 1 to %d", text, emulate.MaxGPUs)
		}
	}
	device, err := emulate.Install(ctx)
	if err != nil {
		return nil, "", emulationFailure(err)
	}
	folder, err := os.MkdirTemp("", "memorymark-request-")
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	python := "python3"
	if f.python != "" {
		python = f.python
	}
	e.endsItself.Store(true)
	sum, err := device.Run(ctx, emulate.Settings{Card: card, GPUs: gpus, Steps: scriptSteps, Folder: folder, Values: emulate.Auto},
		emulate.Command{Args: slices.Concat([]string{python}, args), Stdin: e.stdin, Stdout: e.stderr, Stderr: e.stderr})
	switch {
	case err != nil:
		return nil, "", err
	case sum.Fits != nil && !*sum.Fits:
		return nil, doesNotFit(card), nil
	case sum.ExitCode != 0 && sum.Failure != nil:
		return nil, "", badInput(cmp.Or(sum.Unable, "its output is above"), "%s %s", args[0], sum.Failure)
	case len(sum.Processes) == 0:
		return nil, "", badInput(cmp.Or(sum.Unable, "it must train on device \"cuda\""), "%s used no GPU", args[0])
	}
	return request.New(filepath.Base(args[0]), evidence.Emulated, card, int64(gpus), sum.Processes[0].Peak().Reserved), "", nil
}
