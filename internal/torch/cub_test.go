package torch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/trace"
)

// TestEmbeddingBackward holds the gradient of a table to what was measured on
// an H200: every allocation and every free, in order.
func TestEmbeddingBackward(t *testing.T) {
	tests := []struct {
		indices, rows, size int64
		dtype               DType
		measured            string
	}{
		{3072, 30522, 768, Float32, "+93763584"},
		{3073, 3078, 4, Float32, "+24584 +24584 +24584 +67583 -67583 -24584 +49248 +24584 +8 +24584 +1279 -1279 -24584 " +
			"+24584 +24584 +1279 -1279 +8 +27040 +54080 -54080 -27040 -8 -24584 -24584 -8 -24584 -24584 -24584"},
		{8192, 30522, 768, BFloat16, "+65536 +65536 +65536 +150015 -150015 -65536 +46881792 +65536 +8 +65536 +1279 -1279 -65536 " +
			"+65536 +65536 +1279 -1279 +8 +72088 +27681792 -27681792 -72088 -8 -65536 -65536 -8 -65536 -65536 -65536"},
		{8192, 2, 768, Float32, "+65536 +65536 +65536 +150015 -150015 -65536 +6144 +65536 +8 +65536 +1279 -1279 -65536 " +
			"+16 +16 +1279 -1279 +8 +6568 +6568 -6568 -6568 -8 -16 -16 -8 -65536 -65536 -65536"},
		{100000, 100005, 4, Float32, "+800000 +800000 +800000 +1639423 -1639423 -800000 +1600080 +800000 +8 +800000 +1535 -1535 -800000 " +
			"+800000 +800000 +2815 -2815 +8 +880000 +1760000 -1760000 -880000 -8 -800000 -800000 -8 -800000 -800000 -800000"},
	}
	for _, test := range tests {
		torch := New(Device{SMs: 132, ThreadsPerSM: 2048, Major: 9})
		table := &Tensor{Shape: []int64{test.rows, test.size}, DType: test.dtype}
		index, grad := torch.empty(Int64, test.indices), torch.empty(test.dtype, test.indices, test.size)
		from := len(torch.trace.Events)
		torch.embeddingBackward(grad, index, table)
		if got := signed(torch.trace, from); got != test.measured {
			t.Errorf("%d indices of %d rows of %d:\n     got %s\nmeasured %s", test.indices, test.rows, test.size, got, test.measured)
		}
	}
}

// TestUniqueByKey holds the temporary memory to where it was seen to grow.
func TestUniqueByKey(t *testing.T) {
	for n, want := range map[int64]int64{71680: 1279, 71681: 1535, 143360: 1535, 143361: 1791, 1000000: 4607} {
		if got := (Device{Major: 9}).uniqueByKey(Reference, n); got != want {
			t.Errorf("%d keys: %d bytes, measured %d", n, got, want)
		}
	}
}

// TestEarlierCUB holds the temporary memory on cards of compute capability 8.6
// and 8.9 to what PyTorch asks for there on an emulated card.
func TestEarlierCUB(t *testing.T) {
	d := Device{Major: 8, Minor: 9}
	for n, want := range map[int64][2]int64{
		5000: {99327, 1279}, 16384: {284159, 2047}, 71680: {1183231, 4607}, 100000: {1644543, 6143}, 300000: {4897791, 16127},
	} {
		if got := [2]int64{d.radixSortPairs(n, 64), d.uniqueByKey(Reference, n)}; got != want {
			t.Errorf("%d keys: %d bytes to sort and select, emulated %d", n, got, want)
		}
	}
	if got := (Device{Major: 7, Minor: 5}).radixSortPairs(300000, 64); got != 4926463 {
		t.Errorf("on a T4, 300000 keys take %d bytes to sort, emulated 4926463", got)
	}
}

// TestCUBVersions holds the temporary memory to what PyTorch 2.6, 2.8 and 2.11 ask
// for on emulated cards.
func TestCUBVersions(t *testing.T) {
	for _, test := range []struct {
		version      Version
		major, minor int
		unique       [2]int64 // of 71,681 and of 300,000
		sums         [2]int64 // of 71,681 numbers of 8 and of 4 bytes
	}{
		{Version{2, 6}, 9, 0, [2]int64{767, 1279}, [2]int64{2303, 1023}},
		{Version{2, 6}, 8, 6, [2]int64{2559, 8191}, [2]int64{2303, 1023}},
		{Version{2, 6}, 8, 0, [2]int64{1023, 2047}, [2]int64{2303, 1023}},
		{Version{2, 8}, 9, 0, [2]int64{1279, 2047}, [2]int64{2303, 1023}},
		{Version{2, 8}, 8, 6, [2]int64{4607, 15871}, [2]int64{2303, 1023}},
		{Version{2, 8}, 8, 0, [2]int64{1535, 3583}, [2]int64{2303, 1023}},
		{Version{2, 11}, 8, 0, [2]int64{1791, 3839}, [2]int64{2559, 1279}},
	} {
		d := Device{Major: test.major, Minor: test.minor}
		torch := New(d)
		torch.Version = test.version
		if got := [2]int64{d.uniqueByKey(test.version, 71681), d.uniqueByKey(test.version, 300000)}; got != test.unique {
			t.Errorf("%v on %d.%d: unique keys take %d bytes, emulated %d", test.version, test.major, test.minor, got, test.unique)
		}
		if got := [2]int64{torch.exclusiveSum(71681), torch.inclusiveSum32(71681)}; got != test.sums {
			t.Errorf("%v on %d.%d: sums take %d bytes, emulated %d", test.version, test.major, test.minor, got, test.sums)
		}
	}
}

// TestCumsum holds the scan of a single row likewise, and of more.
func TestCumsum(t *testing.T) {
	for _, test := range []struct {
		rows, n  int64
		measured string
	}{
		{1, 512, "+4096 +4096 +1279 -1279 -4096"},
		{1, 50000, "+400000 +400000 +2047 -2047 -400000"},
		{2, 1000, "+16000 +16000 -16000"},
	} {
		torch := New(Device{SMs: 132, ThreadsPerSM: 2048, Major: 9})
		x := torch.empty(Int32, test.rows, test.n)
		from := len(torch.trace.Events)
		torch.CumsumLast(Borrow(x))
		if got := signed(torch.trace, from); got != test.measured {
			t.Errorf("%d rows of %d: got %s, measured %s", test.rows, test.n, got, test.measured)
		}
	}
}

// signed writes what was allocated and freed from an event on.
func signed(tr *trace.Trace, from int) string {
	var out []string
	for i, e := range tr.Events[from:] {
		switch e.Action {
		case trace.Alloc:
			out = append(out, fmt.Sprintf("+%d", e.Size))
		case trace.FreeCompleted:
			made := slices.IndexFunc(tr.Events[:from+i], func(a trace.Event) bool { return a.Action == trace.Alloc && a.ID == e.ID })
			out = append(out, fmt.Sprintf("-%d", tr.Events[made].Size))
		}
	}
	return strings.Join(out, " ")
}
