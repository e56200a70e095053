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
		Short: "Where two snapshots part, event by event",
		Long: "Aligns the allocations and frees of two snapshots, a predicted and a recorded one or\n" +
			"any two, and names the first place where they part: what each did, whose code did it,\n" +
			"and what is around it. Goes on where they meet again, and lists what else differs.\n\n" +
			"Sizes are what the program asked for; where the allocator put it does not count. Nor\n" +
			"does the order within a run of frees: the allocator's state after it is the same. A\n" +
			"snapshot that ends before the other is compared as far as it goes. The exit code is 1\n" +
			"if anything differs.",
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
	c.Flags().IntVarP(&f.n, "number", "n", 10, "list the first `N` stretches that differ; 0 lists all")
	c.Flags().IntVar(&f.around, "around", 4, "show `N` allocations and frees on either side of the first difference")
	c.Flags().IntVar(&f.frames, "frames", 0, "list the `N` innermost frames of the first difference; -1 lists all")
	return c
}
