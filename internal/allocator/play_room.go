package allocator

import "sync"

// playRoom is what a player writes into while it plays. Each player leaves it to
// the next: a server plays hundreds of traces a second, and collecting their
// blocks took a good part of its time.
type playRoom struct {
	blocks arena
	live   []placement
}

var playRooms = sync.Pool{New: func() any { return new(playRoom) }}

// mostRoom is how many blocks or allocations of room are worth keeping.
const mostRoom = 1 << 17

// occupy gives the player room that another one left.
func (p *player) occupy() {
	p.room = playRooms.Get().(*playRoom)
	p.a.blocks, p.live = p.room.blocks, p.room.live
}

// vacate leaves the room, empty. Nobody may ask the allocator anything any more.
func (p *player) vacate() {
	blocks, live := p.a.blocks, p.live
	p.a.blocks, p.live = arena{}, nil
	if cap(blocks.slots) > mostRoom || cap(live) > mostRoom {
		return
	}
	clear(blocks.slots) // of their pools
	*p.room = playRoom{arena{blocks.slots[:0], blocks.spare[:0]}, live[:0]}
	playRooms.Put(p.room)
}
