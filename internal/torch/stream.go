package torch

// Stream is a CUDA stream, by its index in the trace's list. The allocator
// keeps a pool for each: memory that one of them frees is not reused by another
// (c10/cuda/CUDACachingAllocator.cpp, BlockComparatorSize).
//
// No block here is freed on another stream than its own (record_stream): FSDP
// keeps a reference until the other stream's event has passed, and so does
// NCCL's work object (ProcessGroupNCCL.cpp, stashed_for_allocator_safety_).
// Tensors that stages of a pipeline send are assumed to have arrived when they
// are freed. Stream 0 is the default stream, on which everything runs unless it
// says otherwise.
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
