package torch

import "testing"

// h200 is the card of the recordings.
var h200 = Device{SMs: 132, ThreadsPerSM: 2048, Major: 9, Minor: 0}

// TestReduceScratch holds the scratch of reductions to what an H200 allocated
// (probes of single operators, PyTorch 2.11).
func TestReduceScratch(t *testing.T) {
	torch := New(h200)
	for _, c := range []struct {
		name       string
		shape      []int64
		reduced    []bool
		buffer     int64
		semaphores int64
	}{
		{"bias gradient 4096x3072", []int64{4096, 3072}, []bool{true, false}, 100663296, 96},
		{"bias gradient 4096x2304", []int64{4096, 2304}, []bool{true, false}, 75497472, 72},
		{"weight of a norm 8x512x768", []int64{8, 512, 768}, []bool{true, true, false}, 25165824, 24},
		{"sum of all 8x512x768", []int64{8, 512, 768}, []bool{true, true, true}, 1536, 4},
		{"mean of the last", []int64{8, 512, 768}, []bool{false, false, true}, 0, 0},
		{"over the batch 8x512x768", []int64{8, 512, 768}, []bool{true, false, false}, 0, 0},
	} {
		x := torch.empty(Float32, c.shape...)
		buffer, semaphores := torch.reduceBlocks(x, c.reduced, 4).split(h200)
		if buffer != c.buffer || semaphores != c.semaphores {
			t.Errorf("%s: %d and %d bytes, want %d and %d", c.name, buffer, semaphores, c.buffer, c.semaphores)
		}
	}
}
