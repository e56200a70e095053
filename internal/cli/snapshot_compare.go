package cli

import (
	"github.com/spf13/cobra"

	"memorymark/internal/recording"
	"memorymark/internal/report"
	"memorymark/internal/trace"
)

type compareFlags struct {
	device            int
	n, frames, around int
}

func newSnapshotCompare(e *env) *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare PREDICTED MEASURED",
		Short: "Find where two snapshots diverge, event by event",
		Long: "Aligns the allocations and frees of two snapshots and shows the first place where they\n" +
			"diverge: what each did, which code did it, and the events around it. Continues where they\n" +
			"agree again, and lists the other differences.\n\n" +
			"Sizes are those that the program requested; addresses are ignored, and so is the order\n" +
			"within a run of frees, because the allocator ends in the same state. If one snapshot ends\n" +
			"early, they are compared up to there. The exit code is 1 if anything differs.",
		Example: "  memorymark predict gpt2 --batch 8 --gpu h200 --snapshot predicted.pickle\n" +
			"  memorymark snapshot compare predicted.pickle recorded.pickle",
		Args: exactArgs("PREDICTED", "MEASURED"),
		RunE: func(c *cobra.Command, args []string) error {
			var sides [2]recording.CompareInput
			for i, path := range args {
				r, err := e.openRecording(c.Context(), path, f.device)
				if err != nil {
					return err
				}
				sides[i] = recording.CompareInput{File: path, Trace: r.Trace}
			}
			found := trace.Compare(sides[0].Trace, sides[1].Trace)
			r := recording.NewCompare(sides[0], sides[1], found, f.n, f.around)
			err := e.print(r, report.Compare{Compare: r, Frames: f.frames}.Write)
			if err == nil && found.Differ() {
				return errNo
			}
			return err
		},
	}
	addDeviceFlag(c, &f.device)
	c.Flags().IntVarP(&f.n, "number", "n", 10, "list the first `N` differences; 0 lists all")
	c.Flags().IntVar(&f.around, "around", 4, "show `N` events before and after the first difference")
	c.Flags().IntVar(&f.frames, "frames", 0, "show the `N` innermost stack frames of the first difference; -1 shows all")
	return c
}
