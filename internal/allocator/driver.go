package allocator

// roomBytes is the address space of an expandable segment. PyTorch reserves
// 1⅛ of the device's memory; a snapshot does not say how much that is, and the
// room is never filled, so any amount beyond every card will do.
const roomBytes = 1 << 40

// The address space of a fresh process, as the driver's answers in recorded
// processes show it (testdata/truth: H200, driver 580): it takes address space
// in regions of 32 MiB; two small ones are there from the beginning, above the
// rest; the first new one lies below a gap that later ones fill from its top.
const (
	regionBytes  = 32 << 20
	earlyRegion1 = 32 << 20
	earlyRegion2 = 24 << 20
	earlyGap     = 416 << 20
)

// ModelDriver stands for the CUDA driver where nothing was recorded: it places
// segments as the driver was seen to, new regions downwards and a segment at
// the low end of the latest region with room. Addresses matter because free
// blocks of equal size are used in their order (R4). It never runs out of
// memory: cards have limits (Options.Limit), drivers do not.
type ModelDriver struct {
	regions  []region
	next     uint64 // end of the next region, growing downwards
	gap, end uint64 // the gap above the first region: its low end and what is left of it
	rooms    uint64 // end of the reserved room, growing upwards
}

// region is a range of address space with the segments in it.
type region struct {
	addr uint64
	size int64
	used []span // by address
}

type span struct {
	addr uint64
	size int64
}

// NewModelDriver returns a driver that places segments below the address top.
func NewModelDriver(top uint64) *ModelDriver {
	d := &ModelDriver{next: top, rooms: top + roomBytes}
	for _, size := range []int64{earlyRegion1, earlyRegion2} {
		d.next -= regionBytes
		d.regions = append(d.regions, region{addr: d.next, size: size})
	}
	d.end = d.next
	d.next -= earlyGap
	d.gap = d.next
	return d
}

// Malloc places a segment.
func (d *ModelDriver) Malloc(size int64) (uint64, bool) {
	for i := len(d.regions) - 1; i >= 0; i-- {
		if addr, ok := d.regions[i].place(size); ok {
			return addr, true
		}
	}
	addr := d.newRegion((size + regionBytes - 1) / regionBytes * regionBytes)
	d.regions[len(d.regions)-1].used = []span{{addr, size}}
	return addr, true
}

// newRegion takes address space: for the first time below the gap, later at
// the highest place with room.
func (d *ModelDriver) newRegion(size int64) uint64 {
	first := d.next == d.gap
	end := &d.next
	if !first && d.end-d.gap >= uint64(size) {
		end = &d.end
	}
	*end -= uint64(size)
	d.regions = append(d.regions, region{addr: *end, size: size})
	return *end
}

// place finds the lowest gap of a region that holds size.
func (r *region) place(size int64) (uint64, bool) {
	at := r.addr
	for i := 0; i <= len(r.used); i++ {
		end := r.addr + uint64(r.size)
		if i < len(r.used) {
			end = r.used[i].addr
		}
		if int64(end-at) >= size {
			r.used = append(r.used[:i], append([]span{{at, size}}, r.used[i:]...)...)
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
				r.used = append(r.used[:j], r.used[j+1:]...)
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
