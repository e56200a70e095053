package cli

import (
	"context"
	"errors"
	"math"

	"github.com/spf13/cobra"

	"memorymark/internal/bytesize"
	"memorymark/internal/recording"
	"memorymark/internal/report"
	"memorymark/internal/workbudget"
)

// replayFlags are what a user may change about the recorded run.
type replayFlags struct {
	device      int
	limit       string
	card        string
	fraction    float64
	graphPool   string
	expandable  bool
	maxSplit    string
	gcThreshold float64
	roundup     int64
}

func newSnapshotReplay(e *env) *cobra.Command {
	f := &replayFlags{}
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay a snapshot on a smaller GPU or with other allocator settings",
		Long: "Replays the recorded requests on a simulation of PyTorch's caching allocator. Without\n" +
			"flags it compares the simulation with the recording, address by address. With flags it\n" +
			"shows what would have happened: whether it fits, how much would have been reserved, and\n" +
			"how much is lost to fragmentation.\n\n" +
			"The exit code is 4 if it does not fit, and 1 if the simulation differs from the recording.",
		Example: "  memorymark snapshot replay snapshot.pickle\n" +
			"  memorymark snapshot replay snapshot.pickle --limit 24GiB\n" +
			"  memorymark snapshot replay snapshot.pickle --limit 8GiB --expandable-segments",
		Args: exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), e, c, args[0]) },
	}
	addDeviceFlag(c, &f.device)
	c.Flags().StringVar(&f.limit, "limit", "", "maximum reserved `memory`, such as 24GiB")
	c.Flags().BoolVar(&f.expandable, "expandable-segments", false, "use expandable_segments:True (=false: do not use it)")
	c.Flags().StringVar(&f.maxSplit, "max-split-size", "", "set max_split_size_mb to this much `memory`, such as 128MiB; at least 20MiB")
	c.Flags().Float64Var(&f.gcThreshold, "gc-threshold", 0, "set garbage_collection_threshold to a `fraction` between 0 and 1; needs --limit")
	c.Flags().StringVar(&f.card, "gpu", "", "the limit is what PyTorch can use of this `GPU`, an id from memorymark gpus")
	c.Flags().Float64Var(&f.fraction, "memory-fraction", 0, "set per_process_memory_fraction to this `fraction` of the GPU; needs --gpu")
	c.Flags().StringVar(&f.graphPool, "graph-pool", "", "start the pool of CUDA graphs with this much `memory` (triton.cudagraph_initial_mempool_allocation_gb)")
	c.Flags().Int64Var(&f.roundup, "roundup", 0, "set roundup_power2_divisions to `N`, a power of two")
	return c
}

func (f *replayFlags) run(ctx context.Context, e *env, c *cobra.Command, file string) error {
	whatIf, err := f.whatIf(e, c)
	if err != nil {
		return err
	}
	r, err := e.openRecording(ctx, file, f.device)
	if err != nil {
		return err
	}
	answer, err := r.Replay(whatIf, workbudget.New(math.MaxInt64, ctx.Err))
	var wrong *recording.WhatIfError
	if errors.As(err, &wrong) {
		return badUsage("", "--%s is %s", replayFlag[wrong.Setting].name, wrong.Why)
	}
	if err != nil {
		return badInput("snapshot info and snapshot top still work", "%s: %w", file, err)
	}
	if err := e.print(answer, report.ReplayText{Replay: answer}.Write); err != nil {
		return err
	}
	switch {
	case !answer.Fits:
		return errOutOfMemory
	case !answer.MatchesRecording:
		return errNo
	}
	return nil
}

// replayFlag are the flags by what they set.
var replayFlag = map[string]struct{ name, example string }{
	recording.LimitSetting:        {"limit", "--limit 24GiB"},
	recording.MaxSplitSizeSetting: {"max-split-size", "--max-split-size 128MiB"},
	recording.GCThresholdSetting:  {"gc-threshold", "--gc-threshold 0.8 --limit 24GiB"},
	recording.RoundupSetting:      {"roundup", "--roundup 8"},
	recording.GraphPoolSetting:    {"graph-pool", "--graph-pool 2GiB"},
}

// whatIf reads the flags that were given, and checks them.
func (f *replayFlags) whatIf(e *env, c *cobra.Command) (w recording.WhatIf, err error) {
	given := c.Flags().Changed
	for _, size := range []struct {
		flag, text string
		into       **bytesize.Bytes
	}{{"limit", f.limit, &w.Limit}, {"max-split-size", f.maxSplit, &w.MaxSplitSize}, {"graph-pool", f.graphPool, &w.GraphPool}} {
		if !given(size.flag) {
			continue
		}
		n, err := bytesize.Parse(size.text)
		if err != nil {
			return w, badUsage("write it as --"+size.flag+" 24GiB", "--%s is %q; it must be an amount of memory", size.flag, size.text)
		}
		*size.into = &n
	}
	if w.Limit, err = f.limitOnCard(e, w.Limit, given("memory-fraction")); err != nil {
		return w, err
	}
	if given("expandable-segments") {
		w.ExpandableSegments = &f.expandable
	}
	if given("gc-threshold") {
		w.GCThreshold = &f.gcThreshold
	}
	if given("roundup") {
		w.Roundup = &f.roundup
	}
	var wrong *recording.WhatIfError
	if errors.As(w.Check(), &wrong) {
		flag := replayFlag[wrong.Setting]
		return w, badUsage("write it as "+flag.example, "--%s is %s", flag.name, wrong.Why)
	}
	return w, nil
}

// limitOnCard returns the limit that a card and a share of it mean. PyTorch computes the share
// of the memory that the card reports (c10/cuda/CUDACachingAllocator.cpp, setMemoryFraction).
func (f *replayFlags) limitOnCard(e *env, limit *bytesize.Bytes, fraction bool) (*bytesize.Bytes, error) {
	switch {
	case f.card == "" && fraction:
		return nil, badUsage("write it as --memory-fraction 0.8 --gpu a10", "--memory-fraction is a share of a card, and --gpu names none")
	case f.card == "":
		return limit, nil
	case limit != nil:
		return nil, badUsage("leave one of them out", "--gpu and --limit are both limits")
	case fraction && !(f.fraction > 0 && f.fraction <= 1):
		return nil, badUsage("write it as --memory-fraction 0.8 --gpu a10", "--memory-fraction is %g; it must be more than 0 and at most 1", f.fraction)
	}
	card, err := e.findCard(f.card)
	if err != nil {
		return nil, err
	}
	usable := card.Usable()
	if fraction {
		usable = min(usable, bytesize.Bytes(f.fraction*float64(card.Memory.Bytes)))
	}
	return &usable, nil
}
