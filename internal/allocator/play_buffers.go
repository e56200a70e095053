package allocator

import "sync"

// playBuffers is what a player writes into while it plays. Players reuse it: a
// server plays hundreds of traces a second, and garbage collection of their
// blocks took a good part of its time.
type playBuffers struct {
	blocks arena
	live   []liveBlock
}

var playBuffersPool = sync.Pool{New: func() any { return new(playBuffers) }}

// maxBuffers is the number of blocks or allocations up to which buffers are reused.
const maxBuffers = 1 << 17

// borrowBuffers takes buffers that another player returned.
func (p *player) borrowBuffers() {
	p.buffers = playBuffersPool.Get().(*playBuffers)
	p.a.blocks, p.live = p.buffers.blocks, p.buffers.live
}

// returnBuffers empties the buffers for the next player. The allocator must not be used
// afterwards.
func (p *player) returnBuffers() {
	blocks, live := p.a.blocks, p.live
	p.a.blocks, p.live = arena{}, nil
	if cap(blocks.slots) > maxBuffers || cap(live) > maxBuffers {
		return
	}
	clear(blocks.slots) // of their pools
	*p.buffers = playBuffers{arena{blocks.slots[:0], blocks.spare[:0]}, live[:0]}
	playBuffersPool.Put(p.buffers)
}
