package torch

// Stream is a CUDA stream, by its place in the trace's list. The allocator
// keeps a pool for each: what one of them frees, another does not get
// (c10/cuda/CUDACachingAllocator.cpp, BlockComparatorSize).
//
// No block here is freed on another stream than its own (record_stream): FSDP
// keeps a reference until the other stream's event has passed, and so does
// NCCL's work object (ProcessGroupNCCL.cpp, stashed_for_allocator_safety_). What
// stages of a pipeline send is taken to have arrived when it is freed.
// The first one, 0, is the default stream, which everything runs on that does
// not say otherwise.
type Stream uint16

// newStream is torch.cuda.Stream().
func (t *Torch) newStream() Stream {
	n := len(t.trace.Streams)
	t.trace.Streams = append(t.trace.Streams, uint64(n))
	return Stream(n)
}

// on runs a function with another current stream: torch.cuda.stream(s).
func (t *Torch) on(s Stream, f func()) {
	outer := t.stream
	t.stream = s
	f()
	t.stream = outer
}
