package allocator

import (
	"fmt"

	"memorymark/internal/trace"
)

// Difference is the first event at which a replay and its recording differ.
type Difference struct {
	Event     int    // index of the recorded event, len(Events) for the final state
	Recorded  string // what the recording says
	Simulated string // what the simulation did
}

func (d *Difference) Error() string {
	return fmt.Sprintf("event %d: recorded %s, simulated %s", d.Event, d.Recorded, d.Simulated)
}

// recordedDriver answers as the driver did when the trace was recorded: the
// segment events say how it was called and what it returned. It is the only
// thing that a replay takes from the recording apart from the requests.
type recordedDriver struct {
	events []trace.Event
	at     int // the next event to be matched
	end    int // the request the segment events before it belong to
	first  *Difference
	model  *modelDriver // once the replay has parted from the recording
	asked  int64
	below  int64 // the least it would not let the allocator hold, 0 if it never refused
}

func (d *recordedDriver) next() *trace.Event {
	if d.first == nil && d.at < d.end {
		return &d.events[d.at]
	}
	return nil
}

func (d *recordedDriver) differ(event int, recorded, simulated string) {
	if d.first == nil {
		d.first = &Difference{event, recorded, simulated}
	}
}

// refuses reports whether the allocator was not allowed to hold so much, or
// the driver had no memory: instead of taking a segment it then released some
// or gave up.
func (d *recordedDriver) refuses(total int64) bool {
	if !d.refused() {
		return false
	}
	if d.below == 0 || total < d.below {
		d.below = total
	}
	return true
}

func (d *recordedDriver) refused() bool {
	if e := d.next(); e != nil {
		return isRelease(e.Action)
	}
	return d.first == nil && d.end < len(d.events) && d.events[d.end].Action == trace.OutOfMemory
}

// match consumes the next event if it is the given one.
func (d *recordedDriver) match(action trace.Action, addr uint64, size int64) bool {
	e := d.next()
	if e != nil && e.Action == action && e.Size == size && (addr == 0 || e.Addr == addr) {
		d.at++
		return true
	}
	if d.first == nil {
		simulated := describe(action, addr, size)
		if e == nil {
			d.differ(d.end, "no segment event", simulated)
		} else {
			d.differ(d.at, describe(e.Action, e.Addr, e.Size), simulated)
		}
	}
	return false
}

func (d *recordedDriver) malloc(size int64) (uint64, bool) {
	d.asked += size
	if e := d.next(); d.match(trace.SegmentAlloc, 0, size) {
		return e.Addr, true
	}
	return d.model.malloc(size)
}

func (d *recordedDriver) free(addr uint64, size int64) {
	if !d.match(trace.SegmentFree, addr, size) {
		d.model.free(addr, size)
	}
}

func (d *recordedDriver) reserve(page int64) (uint64, int64) {
	if e := d.next(); e != nil && e.Action == trace.SegmentMap {
		return e.Addr, addressSpace / page * page
	}
	return d.model.reserve(page)
}

func (d *recordedDriver) mapPages(addr uint64, size int64) bool {
	d.asked += size
	d.match(trace.SegmentMap, addr, size)
	return true
}

func (d *recordedDriver) unmapPages(addr uint64, size int64) {
	d.match(trace.SegmentUnmap, addr, size)
}

func describe(action trace.Action, addr uint64, size int64) string {
	if addr == 0 {
		return fmt.Sprintf("%s of %d bytes", action, size)
	}
	return fmt.Sprintf("%s of %d bytes at %#x", action, size, addr)
}
