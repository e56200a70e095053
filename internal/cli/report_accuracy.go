package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/spf13/cobra"

	"memorymark/internal/analysis"
	"memorymark/internal/emulate"
	"memorymark/internal/evidence"
	"memorymark/internal/recording"
)

func newReportAccuracy(e *env) *cobra.Command {
	var real string
	c := &cobra.Command{
		Use:   "report-accuracy RUN.json",
		Short: "Say how far off answers were on your card, as rows to share",
		Long: "Compares what was measured on a real card with what is predicted or emulated of it, and\n" +
			"writes rows of docs/accuracy.csv: send them in a pull request that adds them to\n" +
			"testdata/truth/reported.csv. They name the card, the versions and the kind of model and\n" +
			"batch, but no id, path or name of yours.\n\n" +
			"RUN.json is an answer of memorymark analyze --engine measured --json: its peaks, its largest\n" +
			"batch and its times are compared with predictions of this version. With --recording it is\n" +
			"the summary of memorymark run, and the recording is a snapshot of the same program on the\n" +
			"real card.",
		Example: "  memorymark analyze gpt2 --engine measured --json > run.json\n" +
			"  memorymark report-accuracy run.json\n" +
			"  memorymark run --gpu rtx-4090 --summary run.json -- python train.py\n" +
			"  memorymark report-accuracy run.json --recording real.pickle",
		Args: exactArgs("RUN.json"),
	}
	c.Flags().StringVar(&real, "recording", "", "the snapshot `file` of the emulated program, recorded on the real card")
	c.RunE = func(c *cobra.Command, args []string) error {
		data, err := e.readAll(args[0])
		if err != nil {
			return err
		}
		source := "reported with memorymark " + currentVersion().Version
		var rows []evidence.Row
		if real == "" {
			rows, err = measuredRows(c.Context(), data, source)
		} else {
			rows, err = e.emulatedRows(c.Context(), data, real, source)
		}
		if err != nil {
			if c.Context().Err() != nil {
				return err
			}
			return badInput(seeHelp(c), "%s: %w", args[0], err)
		}
		return e.print(rows, func(w io.Writer, _ int) error { return evidence.WriteRows(w, rows) })
	}
	return c
}

func measuredRows(ctx context.Context, data []byte, source string) ([]evidence.Row, error) {
	var answer analysis.Recorded
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("not an answer in JSON: %w", err)
	}
	return answer.Rows(source, workOf(ctx))
}

// emulatedRows compares the summary of an emulated program with a recording of it.
func (e *env) emulatedRows(ctx context.Context, data []byte, path, source string) ([]evidence.Row, error) {
	var summary emulate.Summary
	if err := json.Unmarshal(data, &summary); err != nil {
		return nil, fmt.Errorf("not a summary of memorymark run in JSON: %w", err)
	}
	s, err := e.openSnapshot(ctx, path)
	if err != nil {
		return nil, err
	}
	devices := recording.Devices(s)
	if len(devices) == 0 {
		return nil, fmt.Errorf("%s has no device", path)
	}
	info, err := recording.New(devices[0]).Info()
	if err != nil {
		return nil, err
	}
	if info.Peak.Allocated == nil || info.Peak.Reserved == nil || info.Events == 0 || info.Lost > 0 || len(info.Failures) > 0 {
		return nil, fmt.Errorf("%s has no whole history of a program that ended well", path)
	}
	name := fnv.New32a() // of sizes alone, so that it tells nothing of the program
	fmt.Fprint(name, info.Events, *info.Peak.Allocated, *info.Peak.Reserved)
	return summary.Rows(source, fmt.Sprintf("program_%08x", name.Sum32()), *info.Peak.Allocated, *info.Peak.Reserved)
}
