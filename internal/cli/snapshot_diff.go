package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"memorymark/internal/report"
	"memorymark/internal/trace"
)

type diffFlags struct {
	device    int
	at        string
	n, frames int
}

func newSnapshotDiff(e *env) *cobra.Command {
	var f diffFlags
	c := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "What grew and what shrank between two snapshots, by stack",
		Long: "Compares what is live in two snapshots at their peaks, or at their ends, by stack and\n" +
			"category. Stacks are the same if all their frames are. The exit code is 1 if\n" +
			"anything differs.",
		Example: "  memorymark snapshot diff monday.pickle today.pickle\n" +
			"  memorymark snapshot diff monday.pickle today.pickle --at end",
		Args: exactArgs("BEFORE", "AFTER"),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := f.diff(c.Context(), e, args[0], args[1])
			if err != nil {
				return err
			}
			err = e.print(d, func(w io.Writer, width int) error {
				return d.Write(w, width, f.frames)
			})
			if err == nil && len(d.Changes) > 0 {
				return errNo
			}
			return err
		},
	}
	addDeviceFlag(c, &f.device)
	c.Flags().StringVar(&f.at, "at", "peak", "`moment` to compare: peak, end or oom")
	c.Flags().IntVarP(&f.n, "number", "n", 20, "list the `N` largest changes; 0 lists all")
	c.Flags().IntVar(&f.frames, "frames", 0, "list the `N` innermost frames of each stack; -1 lists all")
	return c
}

func (f *diffFlags) diff(ctx context.Context, e *env, before, after string) (*report.Diff, error) {
	a, err := f.side(ctx, e, before)
	if err != nil {
		return nil, err
	}
	b, err := f.side(ctx, e, after)
	if err != nil {
		return nil, err
	}
	return report.NewDiff(a.report, b.report, trace.Diff(a.tables, a.live, b.tables, b.live), f.n), nil
}

// diffSide is what is needed of one of the two snapshots; the rest of it can
// be dropped.
type diffSide struct {
	tables *trace.Tables
	live   []trace.Lifetime
	report report.DiffSide
}

func (f *diffFlags) side(ctx context.Context, e *env, path string) (*diffSide, error) {
	t, err := e.readTrace(ctx, path, f.device)
	if err != nil {
		return nil, err
	}
	event, err := eventAt(t, path, f.at)
	if err != nil {
		return nil, err
	}
	live := trace.Live(classified(t), event)
	level := trace.At(live, event)
	return &diffSide{t.Tables, live, report.DiffSide{
		File: path, Device: t.Device, At: f.at, Event: event, Bytes: level.Bytes, Count: level.Count,
	}}, nil
}
