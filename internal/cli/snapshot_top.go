package cli

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"memorymark/internal/report"
	"memorymark/internal/trace"
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
		Short: "What is largest at the peak, and which line made it",
		Long: "Lists what was live at a moment, the largest first, and the line of code that made\n" +
			"it: the innermost one outside PyTorch, and the line of yours that called it.",
		Example: "  memorymark snapshot top oom.pickle\n" +
			"  memorymark snapshot top oom.pickle --at oom --by category\n" +
			"  memorymark snapshot top oom.pickle -n 5 --all-frames",
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := e.readTrace(c.Context(), args[0], f.device)
			if err != nil {
				return err
			}
			top, err := f.top(args[0], t)
			if err != nil {
				return err
			}
			return e.print(top, func(w io.Writer, width int) error {
				return top.Write(w, width, f.shown())
			})
		},
	}
	addDeviceFlag(c, &f.device)
	c.Flags().StringVar(&f.at, "at", "peak", "`moment`: peak, end, oom (the last failure) or the number of an event")
	c.Flags().StringVar(&f.by, "by", report.ByStack, "`what` to group by: stack, size or category")
	c.Flags().IntVarP(&f.n, "number", "n", 20, "list the `N` largest groups; 0 lists all")
	c.Flags().IntVar(&f.frames, "frames", 0, "list the `N` innermost Python frames of each stack")
	c.Flags().BoolVar(&f.allFrames, "all-frames", false, "list whole stacks, C++ and calls of modules included")
	return c
}

func (f *topFlags) top(path string, t *trace.Trace) (*report.Top, error) {
	event, err := eventAt(t, path, f.at)
	if err != nil {
		return nil, err
	}
	top, err := report.NewTop(t, classified(t), event, f.by, f.n)
	if err != nil {
		return nil, badUsage("", "--by: %w", err)
	}
	top.File, top.At = path, f.at
	return top, nil
}

func (f *topFlags) shown() int {
	if f.allFrames {
		return -1
	}
	return max(f.frames, 0)
}

// eventAt returns the event that --at means.
func eventAt(t *trace.Trace, path, at string) (int, error) {
	switch at {
	case "peak":
		return t.Peak().Event, nil
	case "end":
		return len(t.Events) - 1, nil
	case "oom":
		for i := len(t.Events) - 1; i >= 0; i-- {
			if t.Events[i].Action == trace.OutOfMemory {
				return i, nil
			}
		}
		return 0, badUsage("use --at peak", "--at oom: %s has no out-of-memory error on device %d", path, t.Device)
	}
	n, err := strconv.Atoi(at)
	if err != nil {
		return 0, badUsage("it can be peak, end, oom or the number of an event", "--at %s: not a moment", at)
	}
	if n < 0 || n >= len(t.Events) {
		return 0, badUsage("", "--at %d: %s has %d events on device %d, counted from 0", n, path, len(t.Events), t.Device)
	}
	return n, nil
}
