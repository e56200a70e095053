package allocator

// addressSpace is the address space of an expandable segment. PyTorch reserves
// 1⅛ of the device's memory; a snapshot does not say how much that is, and it is never
// filled, so any amount beyond every card will do.
const addressSpace = 1 << 40

// The address space of a process, as the driver's answers in two hundred
// recorded processes show it (H200, driver 580). It takes address space in
// regions of 32 MiB. At the beginning there are three: two small ones on top,
// and below them a wide one that the driver keeps only if something is in it.
// With the first kernel it allocates for itself: a little, right behind the
// first segment if that fits, else in the wide region, which then stays;
// and most of a region of its own.
const (
	regionBytes = 32 << 20
	topRegion   = 32 << 20
	nextRegion  = 24 << 20
	wideRegion  = 416 << 20
	driverFirst = 2 << 20  // what it takes behind the first segment
	driverOwn   = 26 << 20 // of its own region
	ncclOwn     = 14 << 20 // what NCCL takes of the latest region
)

// modelDriver replaces the CUDA driver where nothing was recorded: it places
// segments as the driver was seen to. Addresses matter because free blocks of
// equal size are used in their order (R4). It never runs out of memory: cards
// have limits (Options.Limit), drivers do not.
type modelDriver struct {
	gaps     gapList         // what is free in the regions
	latest   int             // the number of the latest region
	placed   map[uint64]span // the segments, by address
	next     uint64          // end of the next region, growing downwards
	wideGap  span            // where the wide region was, if it is gone
	reserved uint64          // end of the reserved address space, growing upwards
	late     bool            // no kernel runs before the first segment
}

// span is a part of a region. The latest region has the highest number, and of
// the regions with free space it is the latest that is used.
type span struct {
	region int
	addr   uint64
	size   int64
}

// The regions of the beginning.
const (
	inWide = iota
	inTop
	inNext
)

// newModelDriver returns a driver that places segments below the address top.
func newModelDriver(top uint64) *modelDriver {
	d := &modelDriver{
		latest: inNext, placed: make(map[uint64]span),
		next: top - topRegion - regionBytes - wideRegion, reserved: top + addressSpace,
	}
	d.wideGap = span{inWide, d.next, wideRegion}
	d.gaps.add(span{inTop, top - topRegion, topRegion})
	d.gaps.add(span{inNext, top - topRegion - regionBytes, nextRegion})
	return d
}

// newNCCLDriver is the driver of a process that has a communicator of NCCL's
// before its first segment. Kernels have run by then, so that the wide region is
// gone, and NCCL has filled the others but for a part of one (six recorded
// processes of DDP).
func newNCCLDriver(top uint64) *modelDriver {
	d := &modelDriver{latest: inNext, placed: make(map[uint64]span), next: top, reserved: top + addressSpace}
	d.gaps.takeIn(d.addRegion(regionBytes).region, ncclOwn)
	return d
}

// malloc places a segment.
func (d *modelDriver) malloc(size int64) (uint64, bool) {
	var s span
	if d.wideGap.addr != 0 && d.next == d.wideGap.addr {
		s = d.first(size)
	} else {
		s = d.take(size)
	}
	d.placed[s.addr] = s
	return s.addr, true
}

// take takes memory out of the gaps, or out of a new region if it fits none.
func (d *modelDriver) take(size int64) span {
	s, ok := d.gaps.take(size)
	if !ok {
		d.newRegion(size)
		s, _ = d.gaps.take(size)
	}
	return s
}

// first places the first segment and what the driver itself then takes.
func (d *modelDriver) first(size int64) (s span) {
	wide := d.wideGap
	var rest int64 // behind it, for the driver
	switch {
	case size <= smallBuffer: // at the end of the wide region
		wide.size -= size
		s = span{inWide, wide.addr + uint64(wide.size), size}
		d.gaps.takeIn(inNext, driverFirst)
	case size <= nextRegion:
		s = d.gaps.takeIn(inNext, size)
	case size <= topRegion:
		s = d.gaps.takeIn(inTop, size)
		rest = topRegion - size
		d.gaps.takeIn(inTop, min(rest, driverFirst))
	default:
		own := d.addRegion(size)
		s = d.gaps.takeIn(own.region, size)
		rest = own.size - size
		d.gaps.takeIn(own.region, min(rest, driverFirst))
	}
	d.gaps.takeIn(d.addRegion(regionBytes).region, driverOwn)
	if rest < driverFirst { // then the driver is in the wide region
		d.gaps.add(wide)
		d.wideGap.size = 0
	}
	return s
}

// newRegion takes address space at the highest address where it fits.
func (d *modelDriver) newRegion(size int64) {
	if rounded := roundUp(size, regionBytes); d.wideGap.size >= rounded {
		d.wideGap.size -= rounded
		d.latest++
		d.gaps.add(span{d.latest, d.wideGap.addr + uint64(d.wideGap.size), rounded})
		return
	}
	d.addRegion(size)
}

// addRegion takes address space below everything.
func (d *modelDriver) addRegion(size int64) span {
	size = roundUp(size, regionBytes)
	d.next -= uint64(size)
	d.latest++
	s := span{d.latest, d.next, size}
	d.gaps.add(s)
	return s
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// free takes a segment back; its address is used again.
func (d *modelDriver) free(addr uint64, _ int64) {
	if s, ok := d.placed[addr]; ok { // a recorded one need not be
		delete(d.placed, addr)
		d.gaps.add(s)
	}
}

// reserve returns address space for an expandable segment.
func (d *modelDriver) reserve(page int64) (uint64, int64) {
	size := addressSpace / page * page
	addr := d.reserved
	d.reserved += uint64(size)
	return addr, size
}

// mapPages puts memory behind address space; there always is some.
func (d *modelDriver) mapPages(uint64, int64) bool { return true }

// unmapPages takes memory back.
func (d *modelDriver) unmapPages(uint64, int64) {}
