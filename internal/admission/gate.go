// Package admission decides which request proceeds when there are more than can be
// served at once. A Gate bounds how many are served, and how many wait; a Rate bounds
// how often a client may ask.
package admission

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Unbounded is the queue of a gate in front of which another gate bounds the requests.
const Unbounded = math.MaxInt

// Capacity is what a gate admits. A request takes as many slots as it has weight.
type Capacity struct {
	Slots     int64 // that may be taken at a time
	PerClient int64 // of those by one client; 0 is all
	Queue     int   // requests that may wait, half of them of one client; 0 is none
}

// Gate is a weighted semaphore with a bounded queue. Clients that wait take turns,
// however many requests each of them has in the queue; those of one client go in
// order. A heavy request that is next is not overtaken by light ones.
type Gate struct {
	limits Capacity

	mu      sync.Mutex
	taken   int64
	waiting int
	clients map[string]*client
	turns   []*client     // those that wait, who is next first
	mean    time.Duration // for how long slots are taken, lately
	moved   time.Time     // when a slot was last taken or given back
}

// client is one that has slots or waits for some.
type client struct {
	name  string
	taken int64
	queue []*ticket
}

// ticket is a request for slots.
type ticket struct {
	weight   int64
	admitted chan struct{} // closed when it has them
	since    time.Time     // it has them
}

// New returns a gate.
func New(limits Capacity) *Gate {
	if limits.PerClient == 0 {
		limits.PerClient = limits.Slots
	}
	return &Gate{limits: limits, clients: make(map[string]*client)}
}

// BusyError says that too many wait already, and when it is worth asking again.
type BusyError struct{ RetryAfter time.Duration }

func (e *BusyError) Error() string {
	return fmt.Sprintf("too many requests are waiting; try again in %v", e.RetryAfter)
}

// Acquire waits for slots, of which a request gets no more than one client may have.
// The error is the context's, or a *BusyError. Release gives the slots back; more calls
// of it do nothing.
func (g *Gate) Acquire(ctx context.Context, name string, weight int64) (release func(), err error) {
	t := &ticket{weight: min(weight, g.limits.PerClient), admitted: make(chan struct{})}
	if err := g.join(name, t); err != nil {
		return nil, err
	}
	release = sync.OnceFunc(func() { g.release(name, t) })
	select {
	case <-t.admitted:
		return release, nil
	default:
	}
	select {
	case <-t.admitted:
		return release, nil
	case <-ctx.Done():
		if !g.withdraw(name, t) { // it was admitted at the same time
			release()
		}
		return nil, ctx.Err()
	}
}

// Load is how many slots are taken, and how many requests wait for some.
func (g *Gate) Load() (taken int64, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken, g.waiting
}

// join puts a ticket into the queue, unless that is full and no slots are free.
func (g *Gate) join(name string, t *ticket) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clients[name]
	if c == nil {
		c = &client{name: name}
		g.clients[name] = c
	}
	c.queue = append(c.queue, t)
	if g.waiting++; len(c.queue) == 1 {
		g.turns = append(g.turns, c)
	}
	g.admit()
	if t.since.IsZero() && (g.waiting > g.limits.Queue || len(c.queue) > g.limits.Queue-g.limits.Queue/2) {
		g.remove(c, len(c.queue)-1)
		return &BusyError{g.patience()}
	}
	return nil
}

// admit gives free slots to those who are next. A client that has all it may have
// lets others go first.
func (g *Gate) admit() {
	for i := 0; i < len(g.turns); {
		c := g.turns[i]
		t := c.queue[0]
		if c.taken+t.weight > g.limits.PerClient {
			i++
			continue
		}
		if g.taken+t.weight > g.limits.Slots {
			return
		}
		t.since = time.Now()
		g.moved = t.since
		g.taken += t.weight
		c.taken += t.weight
		g.turns = slices.Delete(g.turns, i, i+1)
		if len(c.queue) > 1 {
			g.turns = append(g.turns, c)
		}
		c.queue = c.queue[1:]
		g.waiting--
		close(t.admitted)
	}
}

// remove takes a ticket out of the queue of its client.
func (g *Gate) remove(c *client, i int) {
	c.queue = slices.Delete(c.queue, i, i+1)
	if g.waiting--; len(c.queue) == 0 {
		g.turns = slices.DeleteFunc(g.turns, func(other *client) bool { return other == c })
	}
	g.forget(c)
}

func (g *Gate) forget(c *client) {
	if c.taken == 0 && len(c.queue) == 0 {
		delete(g.clients, c.name)
	}
}

// withdraw leaves the queue; it is false if the ticket has been admitted.
func (g *Gate) withdraw(name string, t *ticket) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !t.since.IsZero() {
		return false
	}
	c := g.clients[name]
	g.remove(c, slices.Index(c.queue, t))
	g.admit() // it may have been in the way of lighter ones
	return true
}

func (g *Gate) release(name string, t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.moved = time.Now()
	if took := g.moved.Sub(t.since); g.mean == 0 {
		g.mean = took
	} else {
		g.mean += (took - g.mean) / 8
	}
	g.taken -= t.weight
	c := g.clients[name]
	c.taken -= t.weight
	g.forget(c)
	g.admit()
}

// The bounds of what a refused client is told to wait.
const (
	minRetry = time.Second
	maxRetry = 2 * time.Minute
)

// patience is when those who wait now will have been served, in whole seconds: as
// long as slots were taken lately, or as long as none was given back.
func (g *Gate) patience() time.Duration {
	each := max(g.mean, time.Since(g.moved))
	rounds := float64(g.waiting+1) / float64(max(g.limits.Slots, 1))
	wait := time.Duration(min(rounds*float64(each), float64(maxRetry)))
	return max(wait.Truncate(time.Second)+time.Second, minRetry)
}
