package gpu

import (
	"cmp"
	"maps"
	"slices"

	"memorymark/internal/bytesize"
)

// SMLimits are what one multiprocessor holds at a time. They follow from the
// compute capability alone.
type SMLimits struct {
	Threads           int            // resident threads
	Blocks            int            // resident blocks
	Shared            bytesize.Bytes // shared memory of all of its blocks
	ReservedPerBlock  bytesize.Bytes // the part that CUDA reserves in each block
	SharedPerBlock    bytesize.Bytes // shared memory of a block that asks for no more
	SharedPerBlockMax bytesize.Bytes // and of one that opts in to more
}

// limits is the table "Technical Specifications per Compute Capability" of the
// CUDA C++ Programming Guide, from
// libcudacxx/include/cuda/__device/arch_traits.h of NVIDIA/cccl@004ad19. An
// H200 reports the same (9.0).
var limits = map[Capability]SMLimits{
	{7, 0}:  onOldSM(2048, 32, 96),
	{7, 5}:  onOldSM(1024, 16, 64),
	{8, 0}:  onSM(2048, 32, 164),
	{8, 6}:  onSM(1536, 16, 100),
	{8, 7}:  onSM(1536, 16, 164),
	{8, 8}:  onSM(1536, 16, 100),
	{8, 9}:  onSM(1536, 24, 100),
	{9, 0}:  onSM(2048, 32, 228),
	{10, 0}: onSM(2048, 32, 228),
	{10, 3}: onSM(2048, 32, 228),
	{11, 0}: onSM(1536, 24, 228),
	{12, 0}: onSM(1536, 24, 100),
	{12, 1}: onSM(1536, 24, 100),
}

// onOldSM makes the limits of a card before Ampere.
func onOldSM(threads, blocks int, sharedKiB bytesize.Bytes) SMLimits {
	shared := sharedKiB * bytesize.KiB
	return SMLimits{Threads: threads, Blocks: blocks, Shared: shared, SharedPerBlock: 48 * bytesize.KiB, SharedPerBlockMax: shared}
}

// onSM makes the limits of a card since Ampere, where CUDA takes 1 KiB of
// shared memory in each block.
func onSM(threads, blocks int, sharedKiB bytesize.Bytes) SMLimits {
	l := onOldSM(threads, blocks, sharedKiB)
	l.ReservedPerBlock = 1 * bytesize.KiB
	l.SharedPerBlockMax -= l.ReservedPerBlock
	return l
}

// Limits returns the limits of the card's multiprocessors, none if its compute
// capability is unknown.
func (c *Card) Limits() SMLimits { return limits[c.ComputeCapability] }

// capabilities returns the compute capabilities that are known, oldest first.
func capabilities() []string {
	known := slices.SortedFunc(maps.Keys(limits), func(a, b Capability) int {
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
	})
	var out []string
	for _, c := range known {
		out = append(out, c.String())
	}
	return out
}
