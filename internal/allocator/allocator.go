// Package allocator simulates PyTorch's CUDA caching allocator, to the byte
// and to the address: pools, best fit, splitting and merging, segments taken
// from the driver and given back, limits, and the statistics PyTorch reports.
//
// The rules below are those of PyTorch 2.11 (c10/cuda/CUDACachingAllocator.cpp,
// function names in brackets); with default settings 2.6 to 2.11 behave alike.
// The code cites them by number.
//
//	R1  [round_size] A request below 512 bytes takes 512; otherwise it is
//	    rounded up to a multiple of 512, or, with roundup_power2_divisions, to
//	    the next of d equal steps between two powers of two.
//	R2  [get_pool] Rounded sizes up to 1 MiB come from the small pool, others
//	    from the large one; a private pool has its own two.
//	R3  [get_allocation_size] A segment is 2 MiB in the small pool; in the large
//	    one 20 MiB for rounded sizes below 10 MiB, else the size rounded up to
//	    2 MiB.
//	R4  [get_free_block] A request takes the smallest free block of its stream
//	    that holds it; of equal ones the lowest address.
//	R5  [get_free_block] Expandable segments: a block at the growing end counts
//	    with the unmapped space behind it, so it is used last.
//	R6  [get_free_block] max_split_size: a request below it never takes a block
//	    that large; one above it takes a block less than 20 MiB larger or none.
//	R7  [should_split] A remainder is split off if it is at least 512 bytes in
//	    the small pool and in expandable segments; in the large pool if it is
//	    more than 1 MiB and the request is below max_split_size. Otherwise the
//	    whole block is handed out, and counted.
//	R8  [alloc_found_block] The low end is handed out; the remainder stays the
//	    old block.
//	R9  [free_block, try_merge_blocks] A freed block merges with its free
//	    neighbours at once and is itself the survivor.
//	R10 [malloc] Without a free block: collect garbage (R14), ask the driver;
//	    failing that, release oversize blocks (R12) and try again; failing that,
//	    release everything releasable (R13) and try a last time; then it is out
//	    of memory.
//	R11 [alloc_block] The limit is tested before the driver is asked, with the
//	    segment size of R3, also where fewer or more pages would be mapped: with
//	    expandable segments a limit can be passed by part of a page.
//	R12 [release_available_cached_blocks] Only with max_split_size: the smallest
//	    oversize block that alone is enough, else the largest ones downwards
//	    until their sum is.
//	R13 [release_cached_blocks] Wait for all pending frees; then, large pool
//	    before small, return every segment that is one free block, and unmap
//	    every page that lies wholly in a free block.
//	R14 [garbage_collect_cached_blocks] With a limit and a threshold: above
//	    threshold × limit, return whole free segments of the large pool that
//	    have gone unused for at least the mean number of searches, until enough
//	    came back.
//	R15 [try_allocate_expandable_block, map_block] Expandable segments grow at
//	    the lowest address where free and unmapped space suffice, by whole pages:
//	    2 MiB in the small pool, 20 MiB in the large one.
//	R16 [free] Memory used on another stream stays active after it was given
//	    back, until that stream has passed; only then is it free (R9).
package allocator

import (
	"fmt"
	"math/bits"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
)

// The constants of c10/core/AllocatorConfig.h (2.11).
const (
	minBlockSize        = 512       // kMinBlockSize
	smallSize           = 1 << 20   // kSmallSize
	smallBuffer         = 2 << 20   // kSmallBuffer
	largeBuffer         = 20 << 20  // large_segment_size, kLargeBuffer before 2.11
	minLargeAlloc       = 10 << 20  // kMinLargeAlloc
	roundLarge          = 2 << 20   // kRoundLarge
	maxNonSplitRounding = 20 << 20  // max_non_split_rounding_size
	tooLarge            = 1 << 60   // a request of 1 EiB fails at once (allocate)
	unlimited           = 1<<63 - 1 // max_split_size when it is not set
)

// Options configure an Allocator. The zero value is PyTorch's default.
type Options struct {
	Settings trace.Settings
	Limit    int64              // of bytes that it may reserve; 0 is none
	Streams  []uint64           // stream handles by index; empty is the default stream alone
	NCCL     bool               // the process has a communicator before its first segment
	Budget   *workbudget.Budget // what playing a trace may take; nil is without bound
	// Repeats is a part of a played trace that requests what the part before it
	// did and, as that part, frees all of it and nothing else; and so do the parts
	// after it. 0 is none.
	Repeats int
}

// driver is where segments come from: the CUDA driver, or what replaces it.
// It sees the allocator's calls in order.
type driver interface {
	// malloc returns the address of a new segment, or false if there is no
	// memory for it.
	malloc(size int64) (addr uint64, ok bool)
	// free takes a segment back.
	free(addr uint64, size int64)
	// reserve returns address space for an expandable segment,
	// a multiple of page bytes.
	reserve(page int64) (addr uint64, size int64)
	// mapPages puts memory behind a part of the reserved address space.
	mapPages(addr uint64, size int64) bool
	// unmapPages takes that memory back.
	unmapPages(addr uint64, size int64)
}

// request is a request for memory.
type request struct {
	Size   int64
	Stream uint16 // index into Options.Streams
	Pool   trace.PoolID
	ID     trace.ID      // kept in the block, for Segments
	Stack  trace.StackID // kept in the block, for Segments
}

// Handle names a block that is handed out, until it is freed.
type blockIndex int32

// cachingAllocator is one device's caching allocator.
type cachingAllocator struct {
	driver   driver
	settings trace.Settings
	maxSplit int64
	limit    int64
	stats    Stats

	blocks     arena
	pools      []*blockPool // small and large of the default pool, then of the private ones
	private    map[trace.PoolID]int
	streamRank []uint16     // by stream index: its index in the order of stream handles (R13)
	cudaEvents []blockIndex // blocks that were freed and wait for other streams (R16); noBlock where one was completed
	completed  int          // number of noBlock among them
	work       int64        // blocks looked at in walks that can be long, see walkBudget
	// refuses replaces the limit where a recording shows the result.
	refuses func(total int64) bool
}

// newAllocator returns an allocator that holds nothing.
func newAllocator(driver driver, opts Options) *cachingAllocator {
	a := &cachingAllocator{
		driver: driver, settings: opts.Settings, limit: opts.Limit,
		maxSplit: opts.Settings.MaxSplitSize, private: make(map[trace.PoolID]int),
	}
	if a.maxSplit == 0 {
		a.maxSplit = unlimited
	}
	a.setStreams(opts.Streams)
	a.addPools(trace.PoolID{})
	return a
}

// OutOfMemoryError is the answer to a request that cannot be met.
type OutOfMemoryError struct {
	Requested int64 // by the program
	Segment   int64 // that the allocator then requested
	Allocated int64 // handed out at the time
	Reserved  int64 // held at the time
	Limit     int64 // 0 if the driver and not a limit refused
}

func (e *OutOfMemoryError) Error() string {
	limit := "the device has no more"
	if e.Limit > 0 {
		limit = fmt.Sprintf("the limit is %v", bytesize.Bytes(e.Limit))
	}
	return fmt.Sprintf("out of memory: requested %v (a segment of %v) with %v reserved, of which %v is allocated; %s",
		bytesize.Bytes(e.Requested), bytesize.Bytes(e.Segment), bytesize.Bytes(e.Reserved), bytesize.Bytes(e.Allocated), limit)
}

// malloc hands out memory (R1–R8, R10). The error is always an
// *OutOfMemoryError.
func (a *cachingAllocator) malloc(r request) (blockIndex, error) {
	if r.Size >= tooLarge {
		return noBlock, a.outOfMemory(r.Size, r.Size)
	}
	size := roundSize(r.Size, &a.settings)
	p := a.getPool(r.Pool, size)
	if a.collectsGarbage() {
		p.getFreeBlockCalls++
	}
	h := a.getFreeBlock(p, r.Stream, size)
	if h == noBlock {
		if h = a.mallocSegment(p, r, size); h == noBlock {
			return noBlock, a.outOfMemory(r.Size, AllocationSize(size))
		}
	}
	return a.allocFoundBlock(h, size, r), nil
}

// grow gets a block from the driver (R10).
func (a *cachingAllocator) mallocSegment(p *blockPool, r request, size int64) blockIndex {
	a.garbageCollectCachedBlocks()
	if h := a.allocBlock(p, r, size); h != noBlock {
		return h
	}
	if a.releaseAvailableCachedBlocks(p, r.Stream, size) {
		if h := a.allocBlock(p, r, size); h != noBlock {
			return h
		}
	}
	a.releaseCachedBlocks()
	a.stats.Retries++
	return a.allocBlock(p, r, size)
}

// allocBlock requests a segment of the driver that holds size (R3, R11, R15).
func (a *cachingAllocator) allocBlock(p *blockPool, r request, size int64) blockIndex {
	segment := AllocationSize(size)
	if !a.withinLimit(a.stats.ReservedBytes[All].Current + segment) {
		return noBlock
	}
	if a.settings.ExpandableSegments {
		return a.tryAllocateExpandableBlock(p, r, size)
	}
	addr, ok := a.driver.malloc(segment)
	if !ok {
		return noBlock
	}
	h := a.blocks.add(block{
		addr: addr, size: segment, stream: r.Stream, pool: p, mapped: true,
		prev: noBlock, next: noBlock, id: trace.None, segmentStack: r.Stack,
	})
	a.stats.DeviceAllocs++
	a.stats.countSegment(p.isSmall, segment, segment >= a.maxSplit)
	return h
}

// withinLimit tests the limit (R11).
func (a *cachingAllocator) withinLimit(total int64) bool {
	if a.refuses != nil {
		return !a.refuses(total)
	}
	return a.limit == 0 || total <= a.limit
}

// allocFoundBlock makes a block that is in no free set the program's, splitting it if
// its remainder is worth keeping (R7, R8).
func (a *cachingAllocator) allocFoundBlock(h blockIndex, size int64, r request) blockIndex {
	b := a.blocks.at(h)
	p, segment := b.pool, b.expandable
	wasSplit := b.prev != noBlock || b.next != noBlock
	if a.shouldSplit(b, size) {
		rest := h
		h = a.blocks.add(block{
			addr: b.addr, size: size, stream: b.stream, pool: p, mapped: true,
			expandable: segment, prev: b.prev, next: rest,
		})
		b = a.blocks.at(rest) // add may have moved the arena
		if b.prev != noBlock {
			a.blocks.at(b.prev).next = h
		}
		b.prev = h
		b.addr += uint64(size)
		b.size -= size
		a.insertFree(rest)
		if segment == nil {
			a.stats.countSplit(p.isSmall, wasSplit, size, b.size)
		}
	} else if wasSplit && segment == nil {
		a.stats.countSplitAllocated(p.isSmall, b.size)
	}
	b = a.blocks.at(h)
	b.allocated = true
	b.requested = r.Size
	b.id, b.stack = r.ID, r.Stack
	a.stats.countAllocated(p.isSmall, b.size, b.requested, b.size >= a.maxSplit)
	return h
}

// splits reports whether a block is too good to hand out whole (R7).
func (a *cachingAllocator) shouldSplit(b *block, size int64) bool {
	rest := b.size - size
	if b.pool.isSmall || a.settings.ExpandableSegments {
		return rest >= minBlockSize
	}
	return size < a.maxSplit && rest > smallSize
}

// free takes memory back that no other stream used.
func (a *cachingAllocator) free(h blockIndex) {
	a.deallocate(h)
	a.freeBlock(h)
}

// freeRequested takes memory back that another stream still uses (R16).
func (a *cachingAllocator) freeRequested(h blockIndex) {
	a.deallocate(h)
	a.insertEvent(h)
}

// freeCompleted says that the other streams have passed. Memory that was
// completed before, by a wait for all streams (R13), is left alone.
func (a *cachingAllocator) freeCompleted(h blockIndex) {
	b := a.blocks.at(h)
	if !b.pending {
		return
	}
	if last := len(a.cudaEvents) - 1; int(b.index) == last { // mostly
		a.cudaEvents = a.cudaEvents[:last]
	} else {
		a.cudaEvents[b.index] = noBlock
		a.completed++
	}
	a.freeBlock(h)
	if a.completed > len(a.cudaEvents)/2 {
		a.packEvents()
	}
}

func (a *cachingAllocator) insertEvent(h blockIndex) {
	b := a.blocks.at(h)
	b.pending = true
	b.index = int32(len(a.cudaEvents))
	a.cudaEvents = append(a.cudaEvents, h)
}

// packEvents removes what was completed.
func (a *cachingAllocator) packEvents() {
	kept := a.cudaEvents[:0]
	for _, h := range a.cudaEvents {
		if h != noBlock {
			a.blocks.at(h).index = int32(len(kept))
			kept = append(kept, h)
		}
	}
	a.cudaEvents, a.completed = kept, 0
}

func (a *cachingAllocator) deallocate(h blockIndex) {
	b := a.blocks.at(h)
	b.allocated = false
	a.stats.countDeallocated(b.pool.isSmall, b.size, b.size >= a.maxSplit)
}

// freeBlock makes memory that was given back free, and merges it (R9).
func (a *cachingAllocator) freeBlock(h blockIndex) {
	b := a.blocks.at(h)
	b.pending = false
	b.id, b.stack = trace.None, 0
	size, requested := b.size, b.requested
	var blocks, bytes int64
	for _, neighbour := range [2]blockIndex{b.prev, b.next} {
		if merged := a.tryMergeBlocks(h, neighbour); merged > 0 {
			blocks--
			bytes -= merged
		}
	}
	a.insertFree(h)
	if b.prev != noBlock || b.next != noBlock {
		blocks++
		bytes += b.size
	}
	if b.expandable != nil {
		blocks, bytes = 0, 0 // inactive_split leaves expandable segments out
	}
	a.stats.countFreed(b.pool.isSmall, size, requested, blocks, bytes)
}

// tryMergeBlocks takes a free neighbour into block h and returns the neighbour's size,
// 0 if it cannot be taken (R9).
func (a *cachingAllocator) tryMergeBlocks(h, neighbour blockIndex) int64 {
	if neighbour == noBlock {
		return 0
	}
	b, n := a.blocks.at(h), a.blocks.at(neighbour)
	if n.allocated || n.pending || n.mapped != b.mapped {
		return 0
	}
	if n.mapped {
		a.removeFree(neighbour)
	} else {
		n.pool.removeUnmapped(n.stream, n.addr)
	}
	if b.prev == neighbour {
		b.addr = n.addr
		b.prev = n.prev
		if b.prev != noBlock {
			a.blocks.at(b.prev).next = h
		}
		b.segmentStack = n.segmentStack
	} else {
		b.next = n.next
		if b.next != noBlock {
			a.blocks.at(b.next).prev = h
		}
	}
	size := n.size
	b.size += size
	a.blocks.drop(neighbour)
	return size
}

// addr returns where a block that is handed out lies.
func (a *cachingAllocator) addr(h blockIndex) uint64 { return a.blocks.at(h).addr }

func (a *cachingAllocator) outOfMemory(requested, segment int64) error {
	a.stats.OutOfMemory++
	return &OutOfMemoryError{
		Requested: requested, Segment: segment, Limit: a.limit,
		Allocated: a.stats.AllocatedBytes[All].Current, Reserved: a.stats.ReservedBytes[All].Current,
	}
}

// roundSize is R1.
func roundSize(size int64, s *trace.Settings) int64 {
	if size < minBlockSize {
		return minBlockSize
	}
	// The divisions are kept by power of two from 1 MiB on (ACfg,
	// roundup_power2_divisions).
	bucket := min(max(bits.Len64(uint64(size))-1-20, 0), len(s.RoundupDivisions)-1)
	if d := s.RoundupDivisions[bucket]; d > 1 && size > minBlockSize*d {
		return nextDivision(size, d)
	}
	return (size + minBlockSize - 1) / minBlockSize * minBlockSize
}

// nextDivision rounds up to the next of d steps between the power of two below
// size and the one above (roundup_power2_next_division).
func nextDivision(size, d int64) int64 {
	floor := int64(1) << (bits.Len64(uint64(size)) - 1)
	if floor == size {
		return size
	}
	step := floor >> (bits.Len64(uint64(d)) - 1)
	if step == 0 {
		return floor << 1
	}
	return (size + step - 1) / step * step
}

// AllocationSize returns what the allocator requests of the driver when no free
// block holds a rounded size (R3).
func AllocationSize(size int64) int64 {
	switch {
	case size <= smallSize:
		return smallBuffer
	case size < minLargeAlloc:
		return largeBuffer
	default:
		return (size + roundLarge - 1) / roundLarge * roundLarge
	}
}
