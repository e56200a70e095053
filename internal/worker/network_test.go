package worker

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"memorymark/internal/job"
)

// A worker that loses its network for longer than its lease loses its job,
// stops it, and continues with others when the network is there again.
func TestLostNetwork(t *testing.T) {
	l := newLab(t)
	cable := newCable(t, strings.TrimPrefix(l.url, "http://"))
	began, stopped := make(chan bool, 9), make(chan error, 9)
	l.start("http://"+cable.addr(), Config{Slots: []Slot{{Card: job.Card{ID: "t4"}, Run: func(ctx context.Context, p json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
		if strings.Contains(string(p), "succeed") {
			return perform(ctx, p, progress)
		}
		began <- true
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return nil, ctx.Err()
	}}}})
	id := l.submit(task{Do: "wait"}).ID
	<-began
	cable.cut()
	l.reach(id, job.Queued) // the server noticed
	cable.mend()
	if cause := <-stopped; !errors.Is(cause, job.ErrLost) {
		t.Errorf("stopped because of %v", cause)
	}
	if _, err := l.q.Cancel(l.ctx, id, "enough"); err != nil { // it was taken again
		t.Fatal(err)
	}
	l.reach(l.submit(task{Do: "succeed"}).ID, job.Succeeded)
}

// If no one else took the job, its result counts although the worker was away.
func TestBriefLossOfNetwork(t *testing.T) {
	l := newLab(t)
	cable := newCable(t, strings.TrimPrefix(l.url, "http://"))
	began, finish := make(chan struct{}), make(chan struct{})
	l.start("http://"+cable.addr(), Config{Slots: []Slot{{Card: job.Card{ID: "t4"}, Run: func(ctx context.Context, p json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
		close(began)
		<-finish
		return perform(ctx, p, progress)
	}}}})
	id := l.submit(task{Do: "succeed", Input: 5}).ID
	<-began
	cable.cut()
	close(finish)
	for cable.refusals() == 0 { // it tries to come back
		if l.ctx.Err() != nil {
			t.Fatal("the worker does not miss its network")
		}
		time.Sleep(10 * time.Millisecond)
	}
	cable.mend()
	if j := l.reach(id, job.Succeeded); j.Attempt != 1 || l.result(id) != `{"output":25}` {
		t.Errorf("%+v with %s", j, l.result(id))
	}
}

// A worker continues while its server is away, and the one that comes back has its
// result, although it knew nothing of the worker.
func TestServerRestarted(t *testing.T) {
	l := newLab(t)
	release := make(chan struct{})
	l.start(l.url, Config{Slots: []Slot{{Card: job.Card{ID: "t4"}, Run: until(release)}}})
	id := l.works(l.submit(task{Input: 1}).ID).ID
	l.q.Close()
	q, err := job.Open(l.ctx, job.Config{Dir: l.dir, Lease: testLease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	l.q = q
	l.serve(q)
	l.works(id)
	close(release)
	if j := l.reach(id, job.Succeeded); j.Attempt != 1 {
		t.Errorf("%+v", j)
	}
	l.reach(l.submit(task{Input: 2}).ID, job.Succeeded)
}

// cable is a network connection that can be cut.
type cable struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	off      bool
	refused  int // connections, while it was cut
	conns    map[net.Conn]bool
}

func newCable(t *testing.T, target string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: listener, target: target, conns: make(map[net.Conn]bool)}
	t.Cleanup(func() {
		listener.Close()
		c.cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go c.carry(conn)
		}
	}()
	return c
}

func (c *cable) addr() string { return c.listener.Addr().String() }

func (c *cable) carry(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer to.Close()
	c.mu.Lock()
	if c.off {
		c.refused++
		c.mu.Unlock()
		return
	}
	c.conns[from], c.conns[to] = true, true
	c.mu.Unlock()
	done := make(chan struct{}, 2)
	for _, ends := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			copyUntilError(ends[0], ends[1])
			done <- struct{}{}
		}()
	}
	<-done
}

func copyUntilError(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	for conn := range c.conns {
		conn.Close()
	}
	clear(c.conns)
}

func (c *cable) refusals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = false
}
