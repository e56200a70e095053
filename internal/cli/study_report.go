package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"memorymark/internal/gpu"
	"memorymark/internal/report"
	"memorymark/internal/study"
	"memorymark/internal/workload"
)

type reportFlags struct {
	*engineFlags
	*stepFlags
	sizes, contexts string
	batch           string
	dtype           string
	gpu             string
	folder          string
}

// reportAnswer is what --json says of a study.
type reportAnswer struct {
	Folder  string          `json:"folder"`
	Files   []string        `json:"files"`
	Results []*study.Result `json:"results"`
}

func newReport(e *env) *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report",
		Short: "Write a full memory study of a language model to a folder",
		Long: "Profiles forward and training at several context lengths, compares fp32 with mixed\n" +
			"precision at the longest one, derives the size of activations, and writes a folder: a\n" +
			"snapshot and a chart per profile, text summaries, and a self-contained index.html.\n\n" +
			"Without a GPU everything is predicted, and every file says so. If it is interrupted, the\n" +
			"same command resumes it. The exit code is 4 if something does not fit on the GPU; the rest\n" +
			"is still written, with what would fit.",
		Example: "  memorymark study report\n" +
			"  memorymark study report --model-size small,xl --context-length 128,512 --gpu a100-80gb\n" +
			"  memorymark study report --output study --dtype fp16",
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			defer f.close()
			return f.run(c, e)
		},
	}
	f.engineFlags = addEngineFlags(c)
	f.stepFlags = addStepFlags(c, study.DefaultWarmup, study.DefaultSteps)
	flags := c.Flags()
	flags.StringVar(&f.sizes, "model-size", "2.7B", "`sizes` of the reference language model, separated by commas")
	takeKeyNames(c)
	flags.StringVar(&f.contexts, "context-length", "128,256,512", "context `lengths` in tokens, separated by commas; also --sequence")
	flags.StringVar(&f.batch, "batch-size", "4", "samples per step; also --batch")
	flags.StringVar(&f.dtype, "dtype", "bf16", "mixed-precision `type`: bf16 or fp16")
	flags.StringVar(&f.gpu, "gpu", "", "the GPU: an `id` from memorymark gpus, or your own card.json (default: this machine's card, else "+study.DefaultCard+")")
	flags.StringVar(&f.folder, "output", filepath.Join("results", "memory_profiling"), "`folder` to write to")
	showValueAs(flags, "batch-size", "N")
	return c
}

func (f *reportFlags) run(c *cobra.Command, e *env) error {
	plan, err := f.plan(c.Context(), e)
	if err != nil {
		return err
	}
	cells, err := plan.Cells()
	if err != nil {
		return badWorkload(c, err)
	}
	if err := makeFolder(f.folder); err != nil {
		return err
	}
	profiler, err := f.profiler(c.Context(), e, cells[0])
	if err != nil {
		return err
	}
	files := &report.StudyFiles{Plan: plan, Folder: diskFolder(f.folder)}
	results, err := f.profile(c.Context(), e, profiler, files, cells)
	if err != nil {
		return err
	}
	s, names, err := files.Finish(cells, results)
	if err != nil {
		return err
	}
	answer := reportAnswer{Folder: f.folder, Files: names, Results: results}
	if err := e.print(answer, func(w io.Writer, width int) error { return f.summary(w, width, s, len(names)) }); err != nil {
		return err
	}
	return verdict(results)
}

// plan reads the flags.
func (f *reportFlags) plan(ctx context.Context, e *env) (*study.Plan, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	p := &study.Plan{GPU: f.gpu, Device: f.stepFlags.device, Warmup: f.warmup, Steps: f.steps}
	for _, size := range split(f.sizes) {
		model, err := study.ModelOf(size)
		if err != nil {
			return nil, badUsage("", "--%w", err)
		}
		p.Models = append(p.Models, model)
	}
	for _, text := range split(f.contexts) {
		if err := positiveFlag("context-length", text); err != nil {
			return nil, err
		}
		n, _ := strconv.ParseInt(text, 10, 64)
		p.Contexts = append(p.Contexts, n)
	}
	if err := positiveFlag("batch-size", f.batch); err != nil {
		return nil, err
	}
	p.Batch, _ = strconv.ParseInt(f.batch, 10, 64)
	if f.dtype != "bf16" && f.dtype != "fp16" {
		return nil, badUsage("", "--dtype is %q; it must be bf16 or fp16", f.dtype)
	}
	var err error
	if p.Card, err = e.cardOr(ctx, f.gpu, study.DefaultCard); err != nil {
		return nil, err
	}
	p.Mixed = e.mixedOn(p.Card, workload.Precision("amp-"+f.dtype))
	return p, nil
}

// mixedOn is the precision that a card can do, with a notice if it is another.
func (e *env) mixedOn(card *gpu.Card, wanted workload.Precision) workload.Precision {
	p, fellBack := study.Mixed(wanted, card)
	if fellBack {
		e.say("%s has no bf16: using fp16", gpu.WithArticle(card.Name))
	}
	return p
}

func makeFolder(path string) error {
	err := os.MkdirAll(path, 0o755)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(path, ".memorymark-*"); err == nil {
			probe.Close()
			os.Remove(probe.Name())
		}
	}
	if err != nil {
		return &failure{code: exitFailure, hint: "choose a writable folder with --output", err: fmt.Errorf("write the study: %w", err)}
	}
	return nil
}

// profile runs the cells, and saves the snapshot and the picture of each.
func (f *reportFlags) profile(ctx context.Context, e *env, p study.Profiler, files *report.StudyFiles, cells []study.Cell) ([]*study.Result, error) {
	journal, err := study.OpenJournal(filepath.Join(f.folder, study.JournalFile), currentVersion().String())
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	progress := e.newPartProgress("cells")
	results, err := study.Run(ctx, p, cells, study.Options{
		Journal: journal, Progress: progress.tell,
		Keep: files.Keep,
		Kept: func(c study.Cell, r *study.Result) bool {
			return !r.Recorded() || f.has(append(files.Plan.SnapshotFiles(c), study.PictureFile(c)))
		},
	})
	progress.end(err, "the same command continues from there")
	return results, err
}

func (f *reportFlags) path(name string) string { return filepath.Join(f.folder, name) }

func (f *reportFlags) has(names []string) bool {
	for _, name := range names {
		if _, err := os.Stat(f.path(name)); err != nil {
			return false
		}
	}
	return true
}

// diskFolder is a study's folder on the disk.
type diskFolder string

// Write implements report.Folder.
func (f diskFolder) Write(name string, content func(io.Writer) error) error {
	return writeFile(filepath.Join(string(f), name), content)
}

// Read implements report.Folder.
func (f diskFolder) Read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(f), name))
}

// summary is what the terminal shows of a study.
func (f *reportFlags) summary(w io.Writer, width int, s *report.Study, files int) error {
	if err := s.WritePeaks(w, width); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d files in %s; %s holds all of it\n", files, f.folder, f.path(study.IndexFile))
	return err
}

// verdict is the exit code of a study.
func verdict(results []*study.Result) error {
	for _, r := range results {
		if r.Error != "" {
			return fmt.Errorf("profile %s: %s", study.CellName(r.Workload), r.Error)
		}
	}
	for _, r := range results {
		if r.OutOfMemory != nil {
			return errOutOfMemory
		}
	}
	return nil
}
