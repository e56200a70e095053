package server

import (
	"context"
	"slices"
	"sync"
)

// line hands out a number of places. Clients that wait take turns, however many
// requests each of them has in the line; those of one client go in order.
type line struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by client; closed when its turn has come
	turns   []string                   // the clients that wait, who is next first
}

func newLine(places int) *line { return &line{free: places, waiting: make(map[string][]chan struct{})} }

// enter waits for a place; leave gives it back.
func (l *line) enter(ctx context.Context, client string) error {
	mine := l.queue(client)
	if mine == nil {
		return nil
	}
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	if !l.withdraw(client, mine) {
		l.leave() // the turn came at the same time
	}
	return ctx.Err()
}

// queue takes a place if there is one, and returns nil; else it returns what will
// be closed when there is.
func (l *line) queue(client string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free > 0 {
		l.free--
		return nil
	}
	if len(l.waiting[client]) == 0 {
		l.turns = append(l.turns, client)
	}
	mine := make(chan struct{})
	l.waiting[client] = append(l.waiting[client], mine)
	return mine
}

// lengths is how many of a client's requests wait, and of all clients'.
func (l *line) lengths(client string) (own, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, waiting := range l.waiting {
		all += len(waiting)
	}
	return len(l.waiting[client]), all
}

// withdraw leaves the line; it is false if the turn has come.
func (l *line) withdraw(client string, mine chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting[client], mine)
	if i < 0 {
		return false
	}
	l.waiting[client] = slices.Delete(l.waiting[client], i, i+1)
	if len(l.waiting[client]) == 0 {
		delete(l.waiting, client)
		l.turns = slices.DeleteFunc(l.turns, func(c string) bool { return c == client })
	}
	return true
}

// leave gives a place to who is next, or back.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turns) == 0 {
		l.free++
		return
	}
	client := l.turns[0]
	l.turns = l.turns[1:]
	next := l.waiting[client][0]
	if l.waiting[client] = l.waiting[client][1:]; len(l.waiting[client]) == 0 {
		delete(l.waiting, client)
	} else {
		l.turns = append(l.turns, client)
	}
	close(next)
}
