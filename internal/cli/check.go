package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"memorymark/internal/analysis"
	"memorymark/internal/check"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/recording"
	"memorymark/internal/report"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

type checkFlags struct {
	*engineFlags
	update   bool
	baseline string
	format   string
}

func newCheck(e *env) *cobra.Command {
	f := checkFlags{engineFlags: &engineFlags{device: engine.AutoDevice, engine: evidence.Auto}}
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Check workloads against their memory budgets, for CI",
		Long: "Predicts or emulates the workloads in a file and compares them with their budgets and\n" +
			"with a baseline, on a machine without a GPU. The exit code is 1 if one exceeds its budget,\n" +
			"and 4 if one does not fit its GPU; then it has no peak that could be compared. What grew\n" +
			"is listed by module, or by line of your own code.\n\n" +
			"The file is YAML:\n\n" +
			"  baseline: memory.baseline.json   # earlier figures; --update writes them\n" +
			"  allow: 1%                        # allowed growth\n" +
			"  workloads:\n" +
			"    - {name: fine-tuning, model: bert, batch: 32, card: a10}        # must fit this GPU\n" +
			"    - {name: ours, model: \"train.py:make\", batch: 8, max: 22GiB}    # may reserve this much\n\n" +
			"All other keys are those of predict -f. Your own model is emulated, and so is a config.json\n" +
			"of an unknown family; both need a CUDA build of PyTorch.",
		Example: "  memorymark check memory.yaml\n" +
			"  memorymark check memory.yaml --update\n" +
			"  memorymark check memory.yaml --format markdown >> $GITHUB_STEP_SUMMARY\n" +
			"  memorymark check memory.yaml --format sarif > memory.sarif",
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			defer f.close()
			return f.run(c, e, args[0])
		},
	}
	e.addDownload(c)
	f.addPython(c.Flags())
	c.Flags().BoolVar(&f.update, "update", false, "write the current figures to the baseline")
	c.Flags().StringVar(&f.baseline, "baseline", "", "baseline `file` to use instead of the one named in FILE")
	c.Flags().StringVar(&f.format, "format", "text", "output `format`: text, markdown, sarif or junit")
	return c
}

func (f *checkFlags) run(c *cobra.Command, e *env, path string) error {
	if !slices.Contains([]string{"text", "markdown", "sarif", "junit"}, f.format) {
		return badUsage("", "--format is %q; it must be text, markdown, sarif or junit", f.format)
	}
	data, err := e.readAll(path)
	if err != nil {
		return err
	}
	file, err := check.Read(data)
	if err != nil {
		return badInput("memorymark check --help shows one", "%s: %w", path, err)
	}
	if f.baseline == "" && file.Baseline != "" {
		f.baseline = filepath.Join(filepath.Dir(path), file.Baseline)
	}
	if f.update && f.baseline == "" {
		return badUsage("add baseline: memory.baseline.json to "+path, "--update: there is no baseline to write")
	}
	base, err := f.readBaseline()
	if err != nil {
		return err
	}
	if err := f.start(c.Context(), e); err != nil {
		return err
	}
	taken, err := f.takeAll(c.Context(), e, path, file)
	if err != nil {
		return err
	}
	now := base.For(file)
	if f.update {
		for i, item := range file.Items {
			now.Set(item, taken[i])
		}
		base = now
	}
	answer := report.Budgets{Verdicts: []check.BudgetVerdict{}}
	for i, item := range file.Items {
		answer.Verdicts = append(answer.Verdicts, check.Judge(item, *taken[i], base, file.Allow))
	}
	if f.update {
		if err := writeFile(f.baseline, func(w io.Writer) error { return writeJSON(w, now) }); err != nil {
			return err
		}
	}
	return f.print(e, filepath.ToSlash(path), answer)
}

func (f *checkFlags) print(e *env, path string, answer report.Budgets) error {
	var err error
	switch {
	case e.json || f.format == "text":
		err = e.printTable(answer, answer.Write)
	case f.format == "markdown":
		err = answer.WriteMarkdown(e.stdout)
	case f.format == "sarif":
		err = answer.WriteSARIF(e.stdout, path, currentVersion().Version)
	case f.format == "junit":
		err = answer.WriteJUnit(e.stdout, path)
	}
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(answer.Verdicts, func(v check.BudgetVerdict) bool { return !v.Fits }):
		return errOutOfMemory
	case answer.Failed() > 0:
		return errNo
	}
	return nil
}

// readBaseline reads what the workloads took before; there is none before the
// first --update.
func (f *checkFlags) readBaseline() (*check.Baseline, error) {
	base := new(check.Baseline)
	if f.baseline == "" {
		return base, nil
	}
	data, err := os.ReadFile(f.baseline)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.update:
		return base, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, badInput("memorymark check --update writes it; commit it", "the baseline %s does not exist", f.baseline)
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(data, base); err != nil {
		return nil, badInput("memorymark check --update rewrites it", "%s is not a baseline: %w", f.baseline, err)
	}
	return base, nil
}

// takeAll finds out what every workload takes, in the file's order.
func (f *checkFlags) takeAll(ctx context.Context, e *env, path string, file *check.File) ([]*check.Taken, error) {
	var out []*check.Taken
	progress := e.newPartProgress("workloads")
	defer progress.end(nil, "")
	for i, item := range file.Items {
		progress.tell(study.RunProgress{Done: i, Total: len(file.Items)})
		taken, err := f.take(ctx, e, filepath.Dir(path), item)
		if err != nil {
			return nil, badInput("", "%s: %s: %w", path, item.Name, err)
		}
		out = append(out, taken)
	}
	return out, nil
}

// take finds out what a workload takes: by prediction, or by running it on a
// card that is not there. Paths are those of the file.
func (f *checkFlags) take(ctx context.Context, e *env, folder string, item check.Item) (*check.Taken, error) {
	if model := item.Draft.Text("model"); model != "" && !filepath.IsAbs(model) {
		if name := userFunction.FindStringSubmatch(model); name != nil || filepath.Ext(model) == ".json" {
			item.Draft.Set("model", filepath.Join(folder, model))
		}
	}
	return f.takeBy(ctx, e, folder, item.Draft, f.engineFlags)
}

func (f *checkFlags) takeBy(ctx context.Context, e *env, folder string, d workload.Draft, by *engineFlags) (*check.Taken, error) {
	if by.engine == evidence.Auto && userFunction.MatchString(d.Text("model")) {
		emulated := *by // which knows the lines of the user's program
		emulated.engine = evidence.Emulated
		taken, err := f.takeBy(ctx, e, folder, d, &emulated)
		if unable := new(engine.UnableError); !errors.As(err, &unable) {
			return taken, err
		}
	}
	q, user, err := by.request(ctx, e, d)
	if err != nil {
		return nil, err
	}
	if by.emulates(q.Workload, user) {
		return f.emulate(ctx, e, folder, q, user)
	}
	s, err := predict.Run(q.Workload, q.Card, predict.Options{Budget: workOf(ctx)})
	if err != nil {
		return nil, err
	}
	taken := &check.Taken{Engine: evidence.Predicted, Limit: s.Limit}
	if !s.Fits() {
		taken.TooLarge = s.OutOfMemory().Reason()
		return taken, nil
	}
	taken.Allocated, taken.Reserved = s.Peak().PeakAllocated, s.Peak().PeakReserved
	t, err := s.Trace()
	if err != nil {
		return nil, err
	}
	taken.Places, err = check.PlacesOf(recording.New(t), folder)
	return taken, err
}

// emulate runs a model, and reads what it recorded.
func (f *checkFlags) emulate(ctx context.Context, e *env, root string, q analysis.Request, user *measure.UserModel) (*check.Taken, error) {
	folder, err := os.MkdirTemp("", "memorymark-check-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "emulated.pickle")
	found, err := f.runner.Emulate(ctx, q, user, file)
	if err != nil {
		return nil, explainUnable(err, user)
	}
	taken := &check.Taken{Engine: evidence.Emulated, Limit: found.Limit}
	switch {
	case !found.Fits && found.OutOfMemory != nil:
		taken.TooLarge = found.OutOfMemory.Reason()
		return taken, nil
	case !found.Fits:
		taken.TooLarge = found.Failure.Summary()
		return taken, nil
	}
	taken.Reserved = found.PeakReserved()
	for _, s := range found.Steps {
		taken.Allocated = max(taken.Allocated, s.PeakAllocated)
	}
	r, err := e.openRecording(ctx, file, recording.BusiestDevice)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	taken.Places, err = check.PlacesOf(r, root)
	return taken, err
}
