package allocator

import "testing"

// TestLateDriver places the segments of a ViT that Hugging Face's Trainer moves to the
// card, where an emulated driver placed them. On a real H200, the process had the same
// peaks.
func TestLateDriver(t *testing.T) {
	const top = 1 << 46
	d := newLateDriver(top)
	place := func(mib int64, below ...uint64) {
		t.Helper()
		for _, want := range below {
			if addr, _ := d.malloc(mib << 20); (top-addr)>>20 != want {
				t.Errorf("a segment of %d MiB is %d MiB below the top, want %d", mib, (top-addr)>>20, want)
			}
		}
	}
	place(20, 24)
	place(2, 98)
	place(20, 544, 576, 608, 640, 672, 704, 736, 768, 800)
	d.launch(top)
	place(12, 748)
	d.multiply()
	place(32, 448)
	place(20, 416, 396, 376, 356)
	place(2, 802)
	place(20, 336, 316, 296, 276, 256, 236, 216, 196, 176, 156, 136, 1408, 1440)
}

// TestLateDriverGivesBack: the first kernel gives up the region of local memory if no
// segment is in it, and the next ones go there.
func TestLateDriverGivesBack(t *testing.T) {
	const top = 1 << 46
	d := newLateDriver(top)
	d.malloc(40 << 20)
	d.launch(top)
	if addr, _ := d.malloc(64 << 20); addr != top-codeRegion-64<<20 {
		t.Errorf("a segment is %d MiB below the top", (top-addr)>>20)
	}
}
