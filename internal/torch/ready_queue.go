package torch

// readyQueue is the engine's queue of nodes that can run, latest sequence
// number first. Of equals, as all AccumulateGrad are, the one comes first that
// C++'s heap puts there, so it is that heap: std::push_heap and std::pop_heap
// of libstdc++ (bits/stl_heap.h), under std::priority_queue (ReadyQueue,
// torch/csrc/autograd/engine.h). DDP's buckets follow that order.
type readyQueue []*node

func (q *readyQueue) push(n *node) {
	*q = append(*q, n)
	q.rise(len(*q)-1, n)
}

// rise puts a node at a hole, or above it (__push_heap).
func (q *readyQueue) rise(hole int, n *node) {
	h := *q
	for hole > 0 && h[(hole-1)/2].seq < n.seq {
		h[hole] = h[(hole-1)/2]
		hole = (hole - 1) / 2
	}
	h[hole] = n
}

// pop takes the first node: the hole it leaves sinks to the bottom, and the
// last node rises from there (__adjust_heap).
func (q *readyQueue) pop() *node {
	h := *q
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return first
	}
	hole, child := 0, 0
	for child < (len(h)-1)/2 {
		child = 2 * (child + 1)
		if h[child].seq < h[child-1].seq {
			child--
		}
		h[hole] = h[child]
		hole = child
	}
	if len(h)%2 == 0 && child == (len(h)-2)/2 {
		child = 2*child + 1
		h[hole] = h[child]
		hole = child
	}
	q.rise(hole, last)
	return first
}
