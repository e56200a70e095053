package allocator

// Stat is one of PyTorch's statistics (c10/core/CachingDeviceAllocator.h).
type Stat struct {
	Current, Peak    int64
	Allocated, Freed int64 // sums of all increases and decreases
}

func (s *Stat) add(n int64) {
	s.Current += n
	s.Peak = max(s.Peak, s.Current)
	s.Allocated += n
}

func (s *Stat) sub(n int64) {
	s.Current -= n
	s.Freed += n
}

// change adds or subtracts, as the sign says.
func (s *Stat) change(n int64) {
	if n > 0 {
		s.add(n)
	} else if n < 0 {
		s.sub(-n)
	}
}

// Which of a StatArray.
const (
	All = iota
	smallPool
	largePool
)

// StatArray is a statistic of all pools together, the small ones and the large
// ones.
type StatArray [3]Stat

func of(small bool) int {
	if small {
		return smallPool
	}
	return largePool
}

func (s *StatArray) add(small bool, n int64)    { s[All].add(n); s[of(small)].add(n) }
func (s *StatArray) sub(small bool, n int64)    { s[All].sub(n); s[of(small)].sub(n) }
func (s *StatArray) change(small bool, n int64) { s[All].change(n); s[of(small)].change(n) }

// Stats are the statistics of torch.cuda.memory_stats.
type Stats struct {
	Allocations   StatArray // allocation: blocks handed out
	Segments      StatArray // segment: from the driver, expandable ones not counted
	Active        StatArray // handed out or pending
	InactiveSplit StatArray // free blocks that share a segment

	AllocatedBytes     StatArray // whole blocks handed out
	ReservedBytes      StatArray // held from the driver
	ActiveBytes        StatArray // handed out or pending
	InactiveSplitBytes StatArray
	RequestedBytes     StatArray // what was asked for of active blocks

	OversizeAllocations Stat
	OversizeSegments    Stat

	Retries      int64 // num_alloc_retries: last attempts after releasing everything
	OutOfMemory  int64 // num_ooms
	Syncs        int64 // num_sync_all_streams
	DeviceAllocs int64 // num_device_alloc
	DeviceFrees  int64 // num_device_free
}

// resetPeaks makes every peak the current value, as
// torch.cuda.reset_peak_memory_stats does.
func (s *Stats) resetPeaks() {
	s.each(func(stat *Stat) { stat.Peak = stat.Current })
}

// resetSums sets every sum of increases and decreases to 0, as
// torch.cuda.reset_accumulated_memory_stats does.
func (s *Stats) resetSums() {
	s.each(func(stat *Stat) { stat.Allocated, stat.Freed = 0, 0 })
	s.Retries, s.OutOfMemory, s.Syncs, s.DeviceAllocs, s.DeviceFrees = 0, 0, 0, 0, 0
}

func (s *Stats) each(f func(*Stat)) {
	for _, a := range []*StatArray{
		&s.Allocations, &s.Segments, &s.Active, &s.InactiveSplit, &s.AllocatedBytes,
		&s.ReservedBytes, &s.ActiveBytes, &s.InactiveSplitBytes, &s.RequestedBytes,
	} {
		for i := range a {
			f(&a[i])
		}
	}
	f(&s.OversizeAllocations)
	f(&s.OversizeSegments)
}

func (s *Stats) countSegment(small bool, size int64, oversize bool) {
	s.Segments.add(small, 1)
	s.ReservedBytes.add(small, size)
	if oversize {
		s.OversizeSegments.add(1)
	}
}

func (s *Stats) countReleased(small bool, size int64, oversize bool) {
	s.Segments.sub(small, 1)
	s.ReservedBytes.sub(small, size)
	if oversize {
		s.OversizeSegments.sub(1)
	}
}

// countSplit counts a remainder of rest bytes left by a block of size bytes; an
// already split free block only shrinks.
func (s *Stats) countSplit(small, wasSplit bool, size, rest int64) {
	if wasSplit {
		s.InactiveSplitBytes.sub(small, size)
		return
	}
	s.InactiveSplitBytes.add(small, rest)
	s.InactiveSplit.add(small, 1)
}

// countSplitAllocated counts a split free block that is handed out whole.
func (s *Stats) countSplitAllocated(small bool, size int64) {
	s.InactiveSplitBytes.sub(small, size)
	s.InactiveSplit.sub(small, 1)
}

func (s *Stats) countAllocated(small bool, size, requested int64, oversize bool) {
	s.Allocations.add(small, 1)
	s.AllocatedBytes.add(small, size)
	s.Active.add(small, 1)
	s.ActiveBytes.add(small, size)
	s.RequestedBytes.add(small, requested)
	if oversize {
		s.OversizeAllocations.add(1)
	}
}

// countDeallocated counts the program's part of a free: allocated falls here, active
// and requested only when the free completes.
func (s *Stats) countDeallocated(small bool, size int64, oversize bool) {
	s.Allocations.sub(small, 1)
	s.AllocatedBytes.sub(small, size)
	if oversize {
		s.OversizeAllocations.sub(1)
	}
}

// countFreed counts the allocator's part of a free, with the net change of
// split free blocks.
func (s *Stats) countFreed(small bool, size, requested, splitBlocks, splitBytes int64) {
	s.InactiveSplit.change(small, splitBlocks)
	s.InactiveSplitBytes.change(small, splitBytes)
	s.Active.sub(small, 1)
	s.ActiveBytes.sub(small, size)
	s.RequestedBytes.sub(small, requested)
}
