package allocator

// roomBytes is the address space of an expandable segment. PyTorch reserves
// 1⅛ of the device's memory; a snapshot does not say how much that is, and the
// room is never filled, so any amount beyond every card will do.
const roomBytes = 1 << 40

// regionBytes is the granularity at which the driver takes address space for
// segments, seen in recorded processes (testdata/truth).
const regionBytes = 32 << 20

// ModelDriver stands for the CUDA driver where nothing was recorded: it places
// segments as recorded processes show the driver to, new regions below the old
// ones and a segment at the low end of the first region with room. It never
// runs out of memory: cards have limits (Options.Limit), drivers do not.
type ModelDriver struct {
	next    uint64 // end of the next region, growing downwards
	regions []region
	rooms   uint64 // end of the reserved room, growing upwards
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
	return &ModelDriver{next: top, rooms: top + roomBytes}
}

// Malloc places a segment.
func (d *ModelDriver) Malloc(size int64) (uint64, bool) {
	for i := len(d.regions) - 1; i >= 0; i-- {
		if addr, ok := d.regions[i].place(size); ok {
			return addr, true
		}
	}
	whole := (size + regionBytes - 1) / regionBytes * regionBytes
	d.next -= uint64(whole)
	d.regions = append(d.regions, region{addr: d.next, size: whole, used: []span{{d.next, size}}})
	return d.next, true
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
