package gpu

import (
	"cmp"
	"maps"
	"slices"

	"memorymark/internal/bytesize"
)

// Limits are what one multiprocessor holds at a time. They follow from the
// compute capability alone.
type Limits struct {
	Threads           int            // resident threads
	Blocks            int            // resident blocks
	Shared            bytesize.Bytes // shared memory of all of its blocks
	ReservedPerBlock  bytesize.Bytes // of that, what CUDA takes for itself in each block
	SharedPerBlock    bytesize.Bytes // shared memory of a block that asks for no more
	SharedPerBlockMax bytesize.Bytes // and of one that opts in to more
}

// limits is the table "Technical Specifications per Compute Capability" of the
// CUDA C++ Programming Guide, as libcudacxx/include/cuda/__device/arch_traits.h
// of NVIDIA/cccl@004ad19 has it. What an H200 reports agrees (9.0).
var limits = map[Capability]Limits{
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
func onOldSM(threads, blocks int, sharedKiB bytesize.Bytes) Limits {
	shared := sharedKiB * bytesize.KiB
	return Limits{Threads: threads, Blocks: blocks, Shared: shared, SharedPerBlock: 48 * bytesize.KiB, SharedPerBlockMax: shared}
}

// onSM makes the limits of a card since Ampere, where CUDA takes 1 KiB of
// shared memory in each block.
func onSM(threads, blocks int, sharedKiB bytesize.Bytes) Limits {
	l := onOldSM(threads, blocks, sharedKiB)
	l.ReservedPerBlock = 1 * bytesize.KiB
	l.SharedPerBlockMax -= l.ReservedPerBlock
	return l
}

// Limits returns the limits of the card's multiprocessors, none if its
// compute capability is not known.
func (c *Card) Limits() Limits { return limits[c.ComputeCapability] }

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
