package torch

// This file is the temporary memory of CUB's device-wide algorithms on int64,
// as PyTorch 2.11 calls them (aten/src/ATen/cuda/cub.cuh) and CCCL 3 of the
// CUDA 13 toolkit tunes them. CUB puts its parts one
// after the other, each aligned to 256 bytes, in a block that may itself start
// anywhere (cub/util_temporary_storage.cuh, alias_temporaries).

const cubAlign = 256

func cubBlock(parts ...int64) int64 {
	n := int64(cubAlign - 1)
	for _, p := range parts {
		n += divUp(p, cubAlign) * cubAlign
	}
	return n
}

// radixSortPairs is DeviceRadixSort::SortPairs of n int64 keys, sorted by some of
// their bits, with int64 values. One tile of 256 threads with 9 items needs no
// memory. More take one sweep for each digit: where each digit begins, the tiles'
// lookback state, keys and values of every other sweep, and a counter for each
// sweep (cub/device/dispatch/dispatch_radix_sort.cuh, InvokeOnesweep).
func (d Device) radixSortPairs(n int64, keyBits int) int64 {
	const (
		digits   = 1 << 8
		lookback = 4 // bytes of a tile's count of a digit
		single   = 256 * 9
	)
	tile := int64(384 * 12)
	switch d.Major {
	case 7:
		tile = 256 * 11
	case 8:
		tile = 384 * 10
	}
	portion := (1<<28 - 1) / tile * tile
	if n <= single {
		return 1
	}
	sweeps := divUp(int64(keyBits), 8)
	portions := divUp(n, portion)
	tiles := divUp(min(n, portion), tile)
	between := n * 8
	if sweeps <= 1 {
		between = 0 // a single sweep writes straight into the result
	}
	return cubBlock(portions*sweeps*digits*8, tiles*digits*lookback, between, between, portions*sweeps*lookback)
}

// radixSortPairs is the same for any card.
func radixSortPairs(n int64, keyBits int) func(Device) int64 {
	return func(d Device) int64 { return d.radixSortPairs(n, keyBits) }
}

// cubScan is the tiles' lookback state of a scan: a state for each tile, and for a
// warp before the first (ScanTileState, cub/agent/single_pass_scan_operators.cuh).
// The states align themselves, so they are aligned twice; not so in the CUDA 12
// toolkits, as emulated 2.6 and 2.8 show.
func (v Version) cubScan(n, tile, state int64) int64 {
	states := (divUp(n, tile) + 32) * state
	if v.Before(2, 11) {
		return cubBlock(states)
	}
	return cubBlock(cubBlock(states))
}

// exclusiveSum is DeviceScan::ExclusiveScan of int64 with an operator of
// PyTorch's own, for which CUB has no tuning.
func (t *Torch) exclusiveSum(n int64) int64 { return t.Version.cubScan(n, 128*7, 16) }

// inclusiveSum is DeviceScan::InclusiveScan of int64, likewise.
func (t *Torch) inclusiveSum(n int64) int64 { return t.exclusiveSum(n) }

// inclusiveSum32 is the same for float32 or int32: a thread takes 15 items, and states are
// half as large.
func (t *Torch) inclusiveSum32(n int64) int64 { return t.Version.cubScan(n, 128*15, 8) }

// uniqueByKey is DeviceSelect::UniqueByKey of int64 keys with int32 values, whose
// offsets are 32-bit in 2.6. CUB has tunings for compute capability 9.0 and 8.0; for
// others it takes 64 threads with half of 11 items
// (cub/device/dispatch/tuning/tuning_unique_by_key.cuh).
func (d Device) uniqueByKey(v Version, n int64) int64 {
	tile, state := int64(64*5), int64(16)
	switch {
	case d.Major >= 9:
		tile = 320 * 14
	case d.Major == 8 && d.Minor == 0:
		tile = 128 * 14
	}
	if v.Before(2, 8) {
		state = 8
	}
	return v.cubScan(n, tile, state)
}

// selectTrue is DeviceSelect of n elements by a mask: a state of 8 bytes for
// each tile. CUB has tunings for some cards, as emulated ones show
// (cub/device/dispatch/tuning/tuning_select_if.cuh).
func (d Device) selectTrue(v Version, n int64) int64 {
	tile := int64(128 * 5)
	switch {
	case d.Major >= 10:
		tile = 3520
	case d.Major == 9:
		tile = 4224
	case d.Major == 8 && d.Minor == 0:
		tile = 2304
	}
	return v.cubScan(n, tile, 8)
}

// countTrue is DeviceReduce::Sum of a mask of n elements. One tile of 256 threads
// with 16 items needs no memory; more take five blocks for each that the card
// runs at once, each with a sum of four bytes
// (cub/device/dispatch/dispatch_reduce.cuh).
func (d Device) countTrue(n int64) int64 {
	const threads, single, blocks, sum = 256, 256 * 16, 5, 4
	if n <= single {
		return 1
	}
	return cubBlock(int64(d.SMs*(d.ThreadsPerSM/threads)) * blocks * sum)
}
