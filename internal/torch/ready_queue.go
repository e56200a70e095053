package torch

// readyQueue is the engine's queue of nodes that can run, latest sequence
// number first. Among equals, such as all AccumulateGrad, the order is that of
// C++'s heap, so this is that heap: std::push_heap and std::pop_heap of
// libstdc++ (bits/stl_heap.h), under std::priority_queue (ReadyQueue,
// torch/csrc/autograd/engine.h). DDP's buckets follow that order.
type readyQueue []*node

func (q *readyQueue) push(n *node) {
	*q = append(*q, n)
	q.rise(len(*q)-1, n)
}

// rise puts a node at a gap, or above it (__push_heap).
func (q *readyQueue) rise(gap int, n *node) {
	h := *q
	for gap > 0 && h[(gap-1)/2].seq < n.seq {
		h[gap] = h[(gap-1)/2]
		gap = (gap - 1) / 2
	}
	h[gap] = n
}

// pop takes the first node: the gap it leaves sinks to the bottom, and the last
// node rises from there (__adjust_heap).
func (q *readyQueue) pop() *node {
	h := *q
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return first
	}
	gap, child := 0, 0
	for child < (len(h)-1)/2 {
		child = 2 * (child + 1)
		if h[child].seq < h[child-1].seq {
			child--
		}
		h[gap] = h[child]
		gap = child
	}
	if len(h)%2 == 0 && child == (len(h)-2)/2 {
		child = 2*child + 1
		h[gap] = h[child]
		gap = child
	}
	q.rise(gap, last)
	return first
}
