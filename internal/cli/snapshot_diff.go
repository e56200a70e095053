package cli

import (
	"context"

	"github.com/spf13/cobra"

	"memorymark/internal/recording"
	"memorymark/internal/report"
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
		Short: "Show what grew and what shrank between two snapshots, by stack",
		Long: "Compares what is live in two snapshots at their peaks, or at their ends, by stack and\n" +
			"category. Two stacks are equal if all their frames are. The exit code is 1 if anything\n" +
			"differs.",
		Example: "  memorymark snapshot diff monday.pickle today.pickle\n" +
			"  memorymark snapshot diff monday.pickle today.pickle --at end",
		Args: exactArgs("BEFORE", "AFTER"),
		RunE: func(c *cobra.Command, args []string) error {
			d, err := f.diff(c.Context(), e, args[0], args[1])
			if err != nil {
				return err
			}
			err = e.print(d, report.Diff{Diff: d, Frames: f.frames}.Write)
			if err == nil && len(d.Changes) > 0 {
				return errNo
			}
			return err
		},
	}
	addDeviceFlag(c, &f.device)
	c.Flags().StringVar(&f.at, "at", "peak", "`moment` to compare: peak, end or oom")
	c.Flags().IntVarP(&f.n, "number", "n", 20, "list the `N` largest changes; 0 lists all")
	c.Flags().IntVar(&f.frames, "frames", 0, "show the `N` innermost frames of each stack; -1 shows all")
	return c
}

func (f *diffFlags) diff(ctx context.Context, e *env, before, after string) (*recording.Diff, error) {
	a, err := e.openRecording(ctx, before, f.device)
	if err != nil {
		return nil, err
	}
	b, err := e.openRecording(ctx, after, f.device)
	if err != nil {
		return nil, err
	}
	for path, r := range map[string]*recording.Recording{before: a, after: b} {
		if _, err := r.Event(f.at); err != nil {
			return nil, badMoment(path, err)
		}
	}
	d, err := recording.NewDiff(a, b, f.at, f.n)
	if err != nil {
		return nil, err
	}
	d.Before.File, d.After.File = before, after
	return d, nil
}
