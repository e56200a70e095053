package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/predict"
	"memorymark/internal/report"
	"memorymark/internal/snapshot"
	"memorymark/internal/trace"
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
			"Use it for your own function, train.py:make, or for a config.json of an unknown family.\n\n" +
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
	w, user, err := f.subject(c.Context(), e, f.draft(workload.Draft{}, args))
	if err != nil {
		return badWorkload(c, err)
	}
	card, err := e.cardOf(c.Context(), w)
	if err != nil {
		return err
	}
	if f.emulates(w, user) {
		found, err := f.runner.Emulate(c.Context(), analysis.Request{Workload: w, Card: card}, user, f.snapshot)
		if err == nil {
			found.Feed(f.loader.seconds)
		}
		switch {
		case err != nil:
			return explainUnable(err, user)
		case !found.Fits:
			return e.printNo(errOutOfMemory, found, report.EmulationText{Prediction: found}.Write)
		}
		return e.print(found, report.EmulationText{Prediction: found}.Write)
	}
	work := workOf(c.Context())
	defer e.showWork(work, "predicting "+w.Name())()
	s, err := predict.Run(w, card, predict.Options{Budget: work})
	if err != nil {
		return badInput("", "%w", err)
	}
	p, err := s.Prediction()
	if err != nil {
		return badInput("", "%w", err)
	}
	p.Feed(f.loader.seconds)
	loops, err := s.OtherLoops()
	if err != nil {
		return badInput("", "%w", err)
	}
	if err := f.writeSnapshot(s); err != nil {
		return err
	}
	write := report.PredictionText{Prediction: p, Loops: loops}.Write
	if !p.Fits {
		return e.printNo(errOutOfMemory, p, write)
	}
	return e.print(p, write)
}

func (f *predictFlags) writeSnapshot(s *predict.Process) error {
	if f.snapshot == "" {
		return nil
	}
	t, err := s.Trace()
	if err != nil {
		return err
	}
	return writeFile(f.snapshot, func(w io.Writer) error {
		return snapshot.Write(w, &snapshot.Snapshot{Devices: []*trace.Trace{t}})
	})
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
		return f.predictEntry(ctx, e, entry, args)
	})
}

func (f *predictFlags) predictEntry(ctx context.Context, e *env, entry workload.Entry, args []string) (any, error) {
	w, user, err := f.subject(ctx, e, f.draft(entry.Draft, args))
	if err != nil {
		return nil, err
	}
	card, err := e.cardOf(ctx, w)
	if err != nil {
		return nil, err
	}
	if f.emulates(w, user) {
		found, err := f.runner.Emulate(ctx, analysis.Request{Workload: w, Card: card}, user, f.snapshot)
		if err == nil {
			found.Feed(f.loader.seconds)
			if !found.Fits {
				err = errOutOfMemory
			}
		}
		return found, explainUnable(err, user)
	}
	s, err := predict.Run(w, card, predict.Options{Budget: workOf(ctx)})
	if err != nil {
		return nil, err
	}
	p, err := s.Prediction()
	if err != nil {
		return nil, err
	}
	p.Feed(f.loader.seconds)
	if err := f.writeSnapshot(s); err != nil {
		return nil, err
	}
	if !p.Fits {
		return p, errOutOfMemory
	}
	return p, nil
}
