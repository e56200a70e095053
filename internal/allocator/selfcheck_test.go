package allocator

import (
	"math/rand/v2"
	"slices"
	"testing"

	"memorymark/internal/trace"
)

// TestSelfCheckRandom drives allocators of every kind with random requests and
// checks their books after each.
func TestSelfCheckRandom(t *testing.T) {
	expandable := Options{Streams: []uint64{0, 7}}
	expandable.Settings.ExpandableSegments = true
	oversize := Options{Limit: 3 << 30, Streams: []uint64{0, 7}}
	oversize.Settings.MaxSplitSize = 64 << 20
	garbage := Options{Limit: 2 << 30, Streams: []uint64{0, 7}}
	garbage.Settings.GCThreshold = 0.6
	limited := expandable
	limited.Limit = 1 << 30
	for name, opts := range map[string]Options{
		"default": {Streams: []uint64{0, 7}}, "expandable": expandable, "oversize": oversize,
		"garbage": garbage, "limited": limited,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &randomDriver{rand: rand.New(rand.NewPCG(1, 2)), a: newAllocator(newModelDriver(1<<46), opts)}
			for range 20000 {
				d.step()
				if err := d.a.check(); err != nil {
					t.Fatal(err)
				}
			}
			limit := opts.Limit
			if opts.Settings.ExpandableSegments {
				limit += largeBuffer // R11
			}
			if opts.Limit > 0 && d.a.stats.ReservedBytes[All].Peak > limit {
				t.Errorf("reserved %d with a limit of %d", d.a.stats.ReservedBytes[All].Peak, opts.Limit)
			}
		})
	}
}

// randomDriver plays a program that allocates and frees at random.
type randomDriver struct {
	rand *rand.Rand
	a    *cachingAllocator
	live []blockIndex
}

func (d *randomDriver) step() {
	switch n := d.rand.IntN(100); {
	case n < 52 || len(d.live) == 0:
		size := int64(1) << d.rand.IntN(28)
		r := request{Size: size + d.rand.Int64N(size), Stream: uint16(d.rand.IntN(2)), ID: trace.None}
		if d.rand.IntN(10) == 0 {
			r.Pool = trace.PoolID{0, 1}
		}
		if h, err := d.a.malloc(r); err == nil {
			d.live = append(d.live, h)
		} else if len(d.live) > 4 { // free some, as a program that caught it would
			for _, h := range d.live[:len(d.live)/2] {
				d.a.free(h)
			}
			d.live = d.live[len(d.live)/2:]
		}
	case n < 96:
		i := d.rand.IntN(len(d.live))
		h := d.live[i]
		d.live = append(d.live[:i], d.live[i+1:]...)
		if d.rand.IntN(20) > 0 {
			d.a.free(h)
			return
		}
		d.a.freeRequested(h)
	case n < 99 && len(d.a.cudaEvents) > d.a.completed:
		first := slices.IndexFunc(d.a.cudaEvents, func(h blockIndex) bool { return h != noBlock })
		d.a.freeCompleted(d.a.cudaEvents[first])
	case n == 99:
		d.a.releaseCachedBlocks()
	}
}
