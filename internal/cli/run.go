package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/bytesize"
	"memorymark/internal/emulate"
	"memorymark/internal/gpu"
	"memorymark/internal/report"
)

type runFlags struct {
	gpu       string
	gpus      int
	limit     string
	reserve   string
	steps     int
	seconds   int
	oomAtStep int
	snapshot  string
	summary   string
	values    string
}

func newRun(e *env) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND...",
		Short: "Run any PyTorch program on an emulated GPU and report its memory",
		Long: "Runs a command unchanged, with an emulated GPU in place of a real one: your own code on\n" +
			"your own PyTorch, whatever its version. PyTorch's host code is real, so it allocates\n" +
			"exactly what it would on that GPU. Kernels do not run, so no GPU is needed and a step is\n" +
			"quick. What the program computes is meaningless, unless it decides about memory.\n\n" +
			"Output and exit code are those of the command; if it fails because it ran out of GPU\n" +
			"memory, the exit code is 4. The report goes to stderr: peaks, whether it fits, where it ran\n" +
			"out of memory, how it failed, and every place where a value that a kernel would have\n" +
			"computed was made up. Integers and masks that come from the host are correct; a float that\n" +
			"is read is 0, and an unknown mask selects half. With --json the report is the last line of\n" +
			"stdout, after what the command wrote there; --summary writes it to a file.\n\n" +
			"If a made-up value decided a size, an index or a branch, or the program failed after it\n" +
			"read one, the program runs again from the start, and every operator is also computed on\n" +
			"the CPU: a step takes as long as it would there, so --steps 3 is wise. If the program only\n" +
			"compared a made-up number, as early stopping does, it first runs once more with the other\n" +
			"branches, and values are computed if its peaks differ. --values computed computes at once,\n" +
			"--values assumed never.\n\n" +
			"With vllm serve, the report says whether vLLM starts on that GPU, and how much memory, how\n" +
			"many tokens and how long a request its KV cache has space for. Weights are not read, so\n" +
			"the folder of the model needs only a config.json. The server ends once it has started.\n\n" +
			"With --gpus 8 there are eight GPUs: torchrun, accelerate launch and init_process_group\n" +
			"work, and collectives return at once.",
		Example: "  memorymark run --gpu rtx-4090 -- python train.py --epochs 1\n" +
			"  memorymark run --gpu a100-80gb --steps 3 --snapshot step.pickle -- python train.py\n" +
			"  memorymark run --gpu h100 --gpus 2 -- torchrun --nproc-per-node 2 train.py\n" +
			"  memorymark run --gpu rtx-4090 -- vllm serve Qwen/Qwen3-8B",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return badUsage(seeHelp(c), "there is no command to run; write it after --")
			}
			return f.run(c, e, args)
		},
	}
	flags := c.Flags()
	flags.SetInterspersed(false) // the command's flags are the command's
	flags.StringVar(&f.gpu, "gpu", "", "the `GPU` to emulate: an id from memorymark gpus, or your own card.json (default: this machine's, else "+gpu.Default+")")
	flags.IntVar(&f.gpus, "gpus", 1, "number of GPUs")
	showValueAs(flags, "gpus", "N")
	flags.StringVar(&f.limit, "limit", "", "`memory` that each GPU has, such as 22GiB (default: that of the card)")
	flags.StringVar(&f.reserve, "reserve", "", "`memory` to keep free on each GPU, such as 512MiB")
	flags.IntVar(&f.steps, "steps", 0, "stop each process after `N` optimizer steps")
	flags.IntVar(&f.seconds, "seconds", 0, "stop the command after `N` seconds, and report what it took by then")
	flags.StringVar(&f.values, "values", string(emulate.Auto), "values that the program reads: assumed, computed, or `auto`: computed if need be")
	flags.IntVar(&f.oomAtStep, "oom-at-step", 0, "run out of memory in step `N`, to test how the program recovers")
	flags.StringVar(&f.snapshot, "snapshot", "", "record every allocation to a `file`, as a PyTorch memory snapshot")
	flags.StringVar(&f.summary, "summary", "", "also write the result to a `file`, as JSON")
	return c
}

// settings checks the flags.
func (f *runFlags) settings(c *cobra.Command, e *env) (emulate.Settings, error) {
	s := emulate.Settings{GPUs: f.gpus, Steps: f.steps, Seconds: f.seconds, OOMAtStep: f.oomAtStep, Record: f.snapshot != ""}
	var err error
	if s.Values, err = emulate.ParseValues(f.values); err != nil {
		return s, badUsage(seeHelp(c), "--values: %v", err)
	}
	if s.Card, err = e.namedCard(c.Context(), f.gpu); err != nil {
		return s, err
	}
	if f.gpus < 1 || f.gpus > emulate.MaxGPUs {
		return s, badUsage("a program sees the GPUs of one machine; further ranks are processes on other machines", "--gpus is %d; it must be from 1 to %d", f.gpus, emulate.MaxGPUs)
	}
	if f.seconds < 0 {
		return s, badUsage("", "--seconds is %d; it must be at least 1", f.seconds)
	}
	if f.steps < 0 || f.oomAtStep < 0 {
		return s, badUsage("", "--steps and --oom-at-step count from 1")
	}
	if f.limit != "" {
		if s.Limit, err = parseLimit(f.limit); err != nil {
			return s, err
		}
	}
	if f.reserve != "" {
		reserve, err := bytesize.Parse(f.reserve)
		if err != nil || reserve >= s.Card.Usable() {
			return s, badUsage("write it as --reserve 512MiB", "--reserve is %q; it must be an amount of memory that the card has", f.reserve)
		}
		if left := s.Card.Usable() - reserve; s.Limit == 0 || s.Limit > left {
			s.Limit = left
		}
	}
	return s, nil
}

func (f *runFlags) run(c *cobra.Command, e *env, args []string) error {
	e.endsItself.Store(true)
	s, err := f.settings(c, e)
	if err != nil {
		return err
	}
	device, err := emulate.Install(c.Context())
	if err != nil {
		return emulationFailure(err)
	}
	if s.Folder, err = os.MkdirTemp("", "memorymark-run-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.Folder) }()
	sum, err := device.Run(c.Context(), s, emulate.Command{Args: args, Stdin: e.stdin, Stdout: e.stdout, Stderr: e.stderr})
	switch {
	case sum != nil:
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return badInput("check its name, as in memorymark run -- python train.py", "there is no program %s", args[0])
	case errors.Is(err, fs.ErrPermission):
		return badInput("a script is run by its Python: memorymark run -- python "+args[0], "%s is not a program that may be run", args[0])
	default:
		return err
	}
	err = errors.Join(err, f.keepSnapshots(e, sum))
	if f.summary != "" {
		data, _ := json.MarshalIndent(sum, "", "  ")                               // of plain data
		err = errors.Join(err, os.WriteFile(f.summary, append(data, '\n'), 0o644)) //nolint:gosec // for everyone who may read the folder
	}
	err = errors.Join(err, e.printRun(sum))
	switch {
	case err != nil || sum.ExitCode == 0:
		return err
	case sum.Fits != nil && !*sum.Fits:
		return exitAs(exitOutOfMemory)
	}
	return exitAs(sum.ExitCode)
}

// printRun writes the report: as text after the command's output, as JSON in a
// line of its own behind it, even if the command left its last line open.
func (e *env) printRun(sum *emulate.Summary) error {
	if !e.json {
		return report.WriteRun(e.stderr, sum)
	}
	e.printed = true
	if e.text != nil {
		if err := report.WriteRun(e.text, sum); err != nil {
			return err
		}
	}
	fmt.Fprintln(e.stdout)
	line := json.NewEncoder(e.stdout)
	line.SetEscapeHTML(false)
	return line.Encode(sum)
}

// keepSnapshots moves recordings to where they were asked for: that of the
// process that took the most, and others after it.
func (f *runFlags) keepSnapshots(e *env, sum *emulate.Summary) error {
	if f.snapshot == "" {
		return nil
	}
	var failed error
	kept := 0
	for i := range sum.Processes {
		p := &sum.Processes[i]
		if p.Snapshot == "" {
			continue
		}
		to := f.snapshot
		if kept > 0 {
			ext := filepath.Ext(to)
			to = fmt.Sprintf("%s.%d%s", strings.TrimSuffix(to, ext), p.PID, ext)
		}
		err := moveFile(p.Snapshot, to)
		failed = errors.Join(failed, err)
		p.Snapshot = to
		kept++
	}
	if kept == 0 {
		e.say("no process that used the GPU ended in a way that let it write a snapshot to %s", f.snapshot)
	}
	return failed
}

// moveFile renames, or copies where a file system ends in between.
func moveFile(from, to string) error {
	if os.Rename(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644) //nolint:gosec // for everyone who may read the folder
}

// emulationFailure says what to do where there can be no emulated GPU.
func emulationFailure(err error) error {
	var compiler *emulate.CompilerError
	if errors.As(err, &compiler) {
		return &failure{code: exitFailure, hint: compiler.Fix(), err: err}
	}
	return &failure{code: exitFailure, err: err}
}

// exitStatus ends the program with another's exit code, which has said all.
type exitStatus int

func exitAs(code int) error { return exitStatus(code) }

func (s exitStatus) Error() string { return fmt.Sprintf("the command ended with %d", int(s)) }

// parseLimit reads the most that an allocator may reserve. Less than a segment
// of it is a number whose unit was forgotten.
func parseLimit(text string) (bytesize.Bytes, error) {
	limit, err := bytesize.Parse(text)
	if err != nil || limit < 2*bytesize.MiB {
		return 0, badUsage("write it as --limit 22GiB", "--limit is %q; it must be an amount of memory, at least 2 MiB", text)
	}
	return limit, nil
}
