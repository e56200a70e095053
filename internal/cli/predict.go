package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/report"
	"memorymark/internal/workload"
)

type predictFlags struct {
	*workloadFlags
	*engineFlags
	file     string
	snapshot string
	loader   loaderFlag
}

func newPredict(e *env) *cobra.Command {
	var f predictFlags
	c := &cobra.Command{
		Use:   "predict [MODEL]",
		Short: "Predict the memory of a training step, without a GPU",
		Long: "Runs three training steps on a symbolic PyTorch and a simulation of its caching\n" +
			"allocator, and reports the peaks of each step and what the memory is used for at the\n" +
			"peak. Needs no GPU and no Python.\n\n" +
			"With --engine emulated, your own PyTorch (a CUDA build) runs the steps on an emulated GPU.\n" +
			"Your own function, train.py:make, is predicted from its source if all of it is known, and\n" +
			"emulated otherwise, as is a config.json of an unknown family. To read your file takes a\n" +
			"Python 3.10 or later without PyTorch; nothing of it is run.\n\n" +
			"MODEL is an id from memorymark models or of the Hugging Face Hub (Qwen/Qwen3-8B, with\n" +
			"@REVISION if need be), a path to a config.json, or such a function. A model of the Hub is\n" +
			"read from the local cache (HF_HOME); --download fetches its config.json alone.\n\n" +
			"With -f it predicts many workloads from a file, as JSON objects, one per line, or as YAML.\n" +
			"It writes one line of JSON per workload, in order; flags override the file. An invalid\n" +
			"workload gets a line with its error, and the exit code is 2.\n\n" +
			"The exit code is 4 if the steps do not fit on the GPU; with -f, if any do not.",
		Example: "  memorymark predict bert --batch 32 --gpu a10\n" +
			"  memorymark predict gpt2 --precision amp-bf16 --sequence 512 --json\n" +
			"  memorymark predict Qwen/Qwen3-8B --download --lora 16\n" +
			"  memorymark predict ./config.json --optimizer sgd --snapshot step.pickle\n" +
			"  memorymark predict train.py:make --gpu rtx-4090 --batch 64\n" +
			"  memorymark predict -f workloads.jsonl > predictions.jsonl",
		Args: someArgs(0, "MODEL"),
	}
	f.workloadFlags = e.addWorkloadFlags(c)
	f.engineFlags = &engineFlags{device: engine.AutoDevice}
	c.Flags().StringVar((*string)(&f.engine), "engine", string(evidence.Auto), "`engine`: predicted, emulated, or auto, which predicts known models and emulates others")
	f.addPython(c.Flags())
	c.Flags().StringVarP(&f.file, "file", "f", "", "predict the workloads in a `file`, - for standard input")
	c.Flags().StringVar(&f.snapshot, "snapshot", "", "also write the predicted process to a `file`, as a PyTorch memory snapshot")
	f.loader.add(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		defer f.close()
		if err := f.loader.check(); err != nil {
			return err
		}
		if f.engine == evidence.Measured {
			return badUsage("memorymark analyze and profile measure", "--engine is %q; it must be predicted, emulated or auto", f.engine)
		}
		if err := f.start(c.Context(), e); err != nil {
			return err
		}
		if f.file != "" {
			return f.many(c, e, args)
		}
		return f.one(c, e, args)
	}
	return c
}

// one predicts the workload of the command line.
func (f *predictFlags) one(c *cobra.Command, e *env, args []string) error {
	q, user, err := f.request(c.Context(), e, f.draft(workload.Draft{}, args))
	if err != nil {
		return badWorkload(c, err)
	}
	p, err := f.predict(c.Context(), e, q, user)
	switch {
	case err != nil:
		return err
	case !p.fits:
		return e.printNo(errOutOfMemory, p.result, p.text)
	}
	return e.print(p.result, p.text)
}

// many predicts the workloads of a file.
func (f *predictFlags) many(c *cobra.Command, e *env, args []string) error {
	entries, err := e.readWorkloads(f.file)
	if err != nil {
		return err
	}
	if f.snapshot != "" && len(entries) > 1 {
		return badUsage("predict one workload at a time to write its snapshot",
			"--snapshot: %s has %d workloads, a snapshot shows one", f.file, len(entries))
	}
	return answerEntries(c, e, f.file, entries, func(ctx context.Context, entry workload.Entry) (any, error) {
		q, user, err := f.request(ctx, e, f.draft(entry.Draft, args))
		if err != nil {
			return nil, err
		}
		p, err := f.predict(ctx, e, q, user)
		switch {
		case err != nil:
			return nil, err
		case !p.fits:
			return p.result, errOutOfMemory
		}
		return p.result, nil
	})
}

// predicted is a prediction, or what was emulated instead, and its text.
type predicted struct {
	result any
	fits   bool
	text   func(w io.Writer, width int) error
}

// predict predicts, or emulates what is not modelled.
func (f *predictFlags) predict(ctx context.Context, e *env, q analysis.Request, user *measure.UserModel) (*predicted, error) {
	if f.emulates(q.Workload, user) {
		found, err := f.runner.Emulate(ctx, q, user, f.snapshot)
		if err != nil {
			return nil, explainUnable(err, user)
		}
		found.Feed(f.loader.seconds)
		return &predicted{found, found.Fits, report.EmulationText{Prediction: found}.Write}, nil
	}
	work := workOf(ctx)
	if f.file == "" {
		defer e.showWork(work, "predicting "+q.Workload.Name())()
	}
	s, err := predict.Run(q.Workload, q.Card, predict.Options{Budget: work})
	if err != nil {
		return nil, badInput("", "%w", err)
	}
	text := report.PredictionText{}
	if text.Prediction, err = s.Prediction(); err != nil {
		return nil, badInput("", "%w", err)
	}
	text.Feed(f.loader.seconds)
	if f.file == "" { // elsewhere no one reads the text
		if text.Loops, err = s.OtherLoops(); err != nil {
			return nil, badInput("", "%w", err)
		}
	}
	if f.snapshot != "" {
		t, err := s.Trace()
		if err != nil {
			return nil, err
		}
		if err := writeSnapshot(f.snapshot, t); err != nil {
			return nil, err
		}
	}
	return &predicted{text.Prediction, text.Fits, text.Write}, nil
}
