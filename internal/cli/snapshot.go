package cli

import "github.com/spf13/cobra"

func newSnapshot(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Explain memory snapshots recorded by PyTorch",
		Long: "Reads the files that torch.cuda.memory._dump_snapshot writes, uncompressed or compressed\n" +
			"with gzip, zstd or xz. FILE may be - for standard input. Nothing in the file is executed.\n\n" +
			"To record one, put this around your code. It is written even if memory runs out:\n\n" +
			"  torch.cuda.memory._record_memory_history()\n" +
			"  try:\n" +
			"      ...\n" +
			"  finally:\n" +
			"      torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")",
		Example: "  memorymark snapshot info snapshot.pickle\n" +
			"  memorymark snapshot top snapshot.pickle --at oom",
		Args: cobra.ArbitraryArgs,
		RunE: runGroup,
	}
	c.AddCommand(newSnapshotInfo(e), newSnapshotTop(e), newSnapshotTimeline(e), newSnapshotReplay(e), newSnapshotDiff(e), newSnapshotCompare(e), newSnapshotView(e))
	return c
}
