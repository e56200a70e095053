package cli

import (
	"context"

	"github.com/spf13/cobra"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/report"
	"memorymark/internal/trace"
)

// replayFlags are what a user may change about the recorded run.
type replayFlags struct {
	device      int
	limit       string
	expandable  bool
	maxSplit    string
	gcThreshold float64
	roundup     int64
}

func newSnapshotReplay(e *env) *cobra.Command {
	f := &replayFlags{}
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Would it have fitted another card or another allocator setting?",
		Long: "Feeds the recorded requests to a simulation of PyTorch's caching allocator. Without\n" +
			"flags it compares the simulation with the recording, address by address. With flags it\n" +
			"answers what would have happened: whether it fits, what would have been reserved, and\n" +
			"what is lost to fragmentation.\n\n" +
			"The exit code is 1 if it does not fit, or if the simulation parts from the recording.",
		Example: "  memorymark snapshot replay snapshot.pickle\n" +
			"  memorymark snapshot replay snapshot.pickle --limit 24GiB\n" +
			"  memorymark snapshot replay snapshot.pickle --limit 8GiB --expandable-segments",
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), e, c, args[0]) },
	}
	addDeviceFlag(c, &f.device)
	c.Flags().StringVar(&f.limit, "limit", "", "the most the allocator may reserve, as 24GiB")
	c.Flags().BoolVar(&f.expandable, "expandable-segments", false, "with expandable_segments:True (=false: without)")
	c.Flags().StringVar(&f.maxSplit, "max-split-size", "", "with max_split_size_mb, as 128MiB; at least 20MiB")
	c.Flags().Float64Var(&f.gcThreshold, "gc-threshold", 0, "with garbage_collection_threshold, between 0 and 1; needs --limit")
	c.Flags().Int64Var(&f.roundup, "roundup", 0, "with roundup_power2_divisions, a power of two")
	return c
}

func (f *replayFlags) run(ctx context.Context, e *env, c *cobra.Command, file string) error {
	r, err := e.openRecording(ctx, file, f.device)
	if err != nil {
		return err
	}
	change, changed, err := f.change(c, r.Settings)
	if err != nil {
		return err
	}
	var with *allocator.Change
	if changed {
		with = &change
	}
	answer, err := r.Replay(with)
	if err != nil {
		return badInput("snapshot info and top still work on it", "%s: %w", file, err)
	}
	if err := e.print(answer, report.Replay{Replay: answer}.Write); err != nil {
		return err
	}
	if !answer.Fits || !answer.MatchesRecording {
		return errNo
	}
	return nil
}

// change reads the flags; changed is false if the user set none.
func (f *replayFlags) change(c *cobra.Command, settings trace.Settings) (change allocator.Change, changed bool, err error) {
	set := func(name string) bool {
		on := c.Flags().Changed(name)
		changed = changed || on
		return on
	}
	var size bytesize.Bytes
	if set("limit") {
		if size, err = parseLimit(f.limit); err != nil {
			return change, true, err
		}
		change.Limit = int64(size)
	}
	if set("expandable-segments") {
		settings.ExpandableSegments = f.expandable
	}
	if set("max-split-size") {
		// PyTorch refuses less than a large segment (ACfg, max_split_size_mb).
		if size, err = bytesize.Parse(f.maxSplit); err != nil || size < 20*bytesize.MiB {
			return change, true, badUsage("PyTorch takes no less than 20MiB", "--max-split-size %q is not a size it takes", f.maxSplit)
		}
		settings.MaxSplitSize = int64(size)
	}
	if set("gc-threshold") {
		if f.gcThreshold <= 0 || f.gcThreshold >= 1 {
			return change, true, badUsage("write it as --gc-threshold 0.8", "--gc-threshold %g is not between 0 and 1", f.gcThreshold)
		}
		if change.Limit == 0 {
			return change, true, badUsage("add --limit", "--gc-threshold is a fraction of the limit, and there is none")
		}
		settings.GCThreshold = f.gcThreshold
	}
	if set("roundup") {
		if f.roundup < 2 || f.roundup&(f.roundup-1) != 0 {
			return change, true, badUsage("write it as --roundup 8", "--roundup %d is not a power of two", f.roundup)
		}
		for i := range settings.RoundupDivisions {
			settings.RoundupDivisions[i] = f.roundup
		}
	}
	change.Settings = &settings
	return change, changed, nil
}
