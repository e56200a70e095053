package allocator

import "slices"

// roomBytes is the address space of an expandable segment. PyTorch reserves
// 1⅛ of the device's memory; a snapshot does not say how much that is, and the
// room is never filled, so any amount beyond every card will do.
const roomBytes = 1 << 40

// The address space of a process, as the driver's answers in two hundred
// recorded processes show it (H200, driver 580). It takes address space in
// regions of 32 MiB. At the beginning there are three: two small ones on top,
// and below them a wide one that the driver keeps only if something is in it.
// With the first kernel it allocates for itself: a little, right behind the
// first segment if there is room, else in the wide region, which then stays;
// and most of a region of its own.
const (
	regionBytes = 32 << 20
	topRegion   = 32 << 20
	nextRegion  = 24 << 20
	wideRegion  = 416 << 20
	driverFirst = 2 << 20  // what it takes behind the first segment
	driverOwn   = 26 << 20 // of its own region
)

// ModelDriver stands for the CUDA driver where nothing was recorded: it places
// segments as the driver was seen to. Addresses matter because free blocks of
// equal size are used in their order (R4). It never runs out of memory: cards
// have limits (Options.Limit), drivers do not.
type ModelDriver struct {
	regions []region // the latest with room is used
	next    uint64   // end of the next region, growing downwards
	gap     region   // where the wide region was, if it is gone
	rooms   uint64   // end of the reserved room, growing upwards
}

// region is a range of address space with the segments in it.
type region struct {
	addr  uint64
	size  int64
	used  []span // by address
	taken int64  // at most what they sum up to: a full region need not be searched
}

type span struct {
	addr uint64
	size int64
}

// NewModelDriver returns a driver that places segments below the address top.
func NewModelDriver(top uint64) *ModelDriver {
	d := &ModelDriver{next: top, rooms: top + roomBytes}
	d.regions = []region{{addr: top - topRegion, size: topRegion}, {addr: top - topRegion - regionBytes, size: nextRegion}}
	d.next = top - topRegion - regionBytes - wideRegion
	d.gap = region{addr: d.next, size: wideRegion}
	return d
}

// Malloc places a segment.
func (d *ModelDriver) Malloc(size int64) (uint64, bool) {
	if d.next == d.gap.addr {
		return d.first(size), true
	}
	for i := len(d.regions) - 1; i >= 0; i-- {
		if addr, ok := d.regions[i].place(size); ok {
			return addr, true
		}
	}
	addr, _ := d.newRegion(size).place(size)
	return addr, true
}

// first places the first segment and what the driver itself then takes.
func (d *ModelDriver) first(size int64) uint64 {
	top, next := &d.regions[0], &d.regions[1]
	var addr uint64
	var room int64 // behind it, for the driver
	switch {
	case size <= smallSegment: // at the end of the wide region
		addr = d.gap.addr + wideRegion - uint64(size)
		d.gap.used = []span{{addr, size}}
		next.place(driverFirst)
	case size <= nextRegion:
		addr, _ = next.place(size)
	case size <= topRegion:
		addr, _ = top.place(size)
		room = topRegion - size
		top.place(min(room, driverFirst))
	default:
		d.next -= uint64(roundUp(size, regionBytes))
		home := region{addr: d.next, size: roundUp(size, regionBytes)}
		addr, _ = home.place(size)
		room = home.size - size
		home.place(min(room, driverFirst))
		d.regions = append(d.regions, home)
	}
	d.next -= regionBytes
	own := region{addr: d.next, size: regionBytes}
	own.place(driverOwn)
	d.regions = append(d.regions, own)
	if room < driverFirst { // then the driver is in the wide region
		d.regions = append([]region{d.gap}, d.regions...)
		d.gap.size = 0
	}
	return addr
}

// newRegion takes address space at the highest place with room.
func (d *ModelDriver) newRegion(size int64) *region {
	size = roundUp(size, regionBytes)
	at := region{size: size}
	if d.gap.size >= size {
		d.gap.size -= size
		at.addr = d.gap.addr + uint64(d.gap.size)
	} else {
		d.next -= uint64(size)
		at.addr = d.next
	}
	d.regions = append(d.regions, at)
	return &d.regions[len(d.regions)-1]
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// place finds the lowest gap of a region that holds size.
func (r *region) place(size int64) (uint64, bool) {
	if r.size-r.taken < size {
		return 0, false
	}
	at := r.addr
	for i := 0; i <= len(r.used); i++ {
		end := r.addr + uint64(r.size)
		if i < len(r.used) {
			end = r.used[i].addr
		}
		if int64(end-at) >= size {
			r.used = slices.Insert(r.used, i, span{at, size})
			r.taken += size
			return at, true
		}
		if i < len(r.used) {
			at = r.used[i].addr + uint64(r.used[i].size)
		}
	}
	return 0, false
}

// Free takes a segment back; its address is used again.
func (d *ModelDriver) Free(addr uint64, _ int64) {
	for i := range d.regions {
		r := &d.regions[i]
		for j, s := range r.used {
			if s.addr == addr {
				r.used = slices.Delete(r.used, j, j+1)
				r.taken -= s.size
				return
			}
		}
	}
}

// Reserve gives out room for an expandable segment.
func (d *ModelDriver) Reserve(page int64) (uint64, int64) {
	size := roomBytes / page * page
	addr := d.rooms
	d.rooms += uint64(size)
	return addr, size
}

// Map puts memory behind room; there always is some.
func (d *ModelDriver) Map(uint64, int64) bool { return true }

// Unmap takes memory back.
func (d *ModelDriver) Unmap(uint64, int64) {}
