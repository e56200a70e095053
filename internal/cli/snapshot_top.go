package cli

import (
	"github.com/spf13/cobra"

	"memorymark/internal/recording"
	"memorymark/internal/report"
)

type topFlags struct {
	device    int
	at, by    string
	n         int
	frames    int
	allFrames bool
}

func newSnapshotTop(e *env) *cobra.Command {
	var f topFlags
	c := &cobra.Command{
		Use:   "top FILE",
		Short: "List the largest allocations at the peak, and the lines that made them",
		Long: "Lists what was live at a moment, largest first, with the line of code that allocated it:\n" +
			"the innermost line of a library or of yours, of torch.nn where you call that, and the line\n" +
			"of your code that called it. --by stack lists each stack of a line.",
		Example: "  memorymark snapshot top oom.pickle\n" +
			"  memorymark snapshot top oom.pickle --at oom --by category\n" +
			"  memorymark snapshot top oom.pickle -n 5 --all-frames",
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := e.openRecording(c.Context(), args[0], f.device)
			if err != nil {
				return err
			}
			top, err := f.top(args[0], r)
			if err != nil {
				return err
			}
			return e.print(top, report.Top{Top: top, Frames: f.shown()}.Write)
		},
	}
	addDeviceFlag(c, &f.device)
	c.Flags().StringVar(&f.at, "at", "peak", "`moment` to look at: peak, end, oom (the last failure) or an event number")
	c.Flags().StringVar(&f.by, "by", recording.ByLine, "group by this `key`: line, stack, size, category or metadata (what the program said of its memory)")
	c.Flags().IntVarP(&f.n, "number", "n", 20, "list the `N` largest groups; 0 lists all")
	c.Flags().IntVar(&f.frames, "frames", 0, "show the `N` innermost Python frames of each group, or of its largest stack")
	c.Flags().BoolVar(&f.allFrames, "all-frames", false, "show whole stacks, including C++ frames and module calls")
	return c
}

func (f *topFlags) top(path string, r *recording.Recording) (*recording.Top, error) {
	if _, err := r.Event(f.at); err != nil {
		return nil, badMoment(path, err)
	}
	top, err := r.Top(f.at, f.by, f.n)
	if err != nil {
		return nil, badUsage("", "--by: %w", err)
	}
	top.File = path
	return top, nil
}

func (f *topFlags) shown() int {
	if f.allFrames {
		return -1
	}
	return max(f.frames, 0)
}
