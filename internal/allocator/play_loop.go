package allocator

import (
	"cmp"
	"encoding/binary"
	"slices"

	"memorymark/internal/trace"
)

// This file plays the loops of a trace. Rounds request the same, but where they
// get it depends on what the round before left free; so they are played one
// after the other, until one ends as an earlier one did. From there on all is
// as before, and the rounds in between need not be played again.

// rounds is a loop that is being played.
type rounds struct {
	left int // rounds that are still to be played
	// In the round after, each of those that a round frees and that were there
	// before becomes the one that it left instead.
	turnover trace.Turnover

	played int
	seen   map[string]int // how rounds ended, and which, since the driver was called last
	traffic
}

// traffic is what went to the driver and came back from it.
type traffic struct{ taken, returned int64 }

// again reports whether the loop that was just played to its end has another
// round, and prepares it. It drops a loop that has none.
func (p *player) again() bool {
	loop, r := p.loops[0], p.rounds
	if r.played++; r.left > 0 && p.writer == nil && !p.a.collectsGarbage() {
		r.left -= p.skipped()
	}
	if r.left == 0 {
		p.loops, p.rounds = p.loops[1:], nil
		return false
	}
	r.left--
	for i, id := range r.turnover.Older {
		p.live[id] = p.live[r.turnover.Left[i]]
	}
	if p.writer != nil {
		p.writer.rewind(p.trace.Marks, loop.From)
	}
	return true
}

// nextOfLoop is where the next loop begins or, in it, ends.
func (p *player) nextOfLoop(at int) int {
	loop := p.loops[0]
	if at < loop.From {
		return loop.From
	}
	if p.rounds == nil {
		p.rounds = p.newRounds(loop)
		p.rounds.seen[p.state(p.rounds.turnover.Older)] = 0
	}
	return loop.To
}

func (p *player) newRounds(loop trace.Loop) *rounds {
	return &rounds{
		left: loop.Times - 1, turnover: trace.TurnoverOf(p.trace.Events[loop.From:loop.To]),
		seen: make(map[string]int), traffic: p.traffic(),
	}
}

// skipped is how many rounds would change nothing. What the allocator does
// depends on its segments and on what is where in them: free memory is what is
// between, since free neighbours merge at once (R9). So if the driver was not
// called, and everything that rounds replace is where it was after an earlier
// round, the state is that one's.
func (p *player) skipped() int {
	r := p.rounds
	if now := p.traffic(); now != r.traffic {
		r.traffic = now
		clear(r.seen)
	}
	state := p.state(r.turnover.Left)
	before, known := r.seen[state]
	if !known {
		r.seen[state] = r.played
		return 0
	}
	period := r.played - before
	return r.left / period * period
}

// state is where everything is that rounds replace: what was there before the first
// round, or what the latest one left.
func (p *player) state(ids []trace.ID) string {
	var state []byte
	for _, id := range ids {
		b := p.a.blocks.at(p.live[id].block)
		state = binary.LittleEndian.AppendUint64(state, b.addr)
		state = binary.LittleEndian.AppendUint64(state, uint64(b.size))
	}
	return string(state)
}

func (p *player) traffic() traffic {
	s := &p.a.stats.ReservedBytes[All]
	return traffic{s.Allocated, s.Freed}
}

// rewind copies the marks from an event of the old trace on once more.
func (w *placeWriter) rewind(marks []trace.Mark, from int) {
	first, _ := slices.BinarySearchFunc(marks, from, func(m trace.Mark, event int) int { return cmp.Compare(m.Event, event) })
	w.marks = marks[first:]
}
