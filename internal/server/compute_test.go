package server

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"memorymark/internal/predict"
)

// as is a context of a client's request.
func as(t *testing.T, client string) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithValue(t.Context(), callKey{}, &call{from: client}))
}

// Clients take turns, however much each of them asks for.
func TestLine(t *testing.T) {
	l := newLine(1)
	ctx, _ := as(t, "")
	if err := l.enter(ctx, "first"); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	var all sync.WaitGroup
	join := func(client string, ctx context.Context) {
		before := l.length()
		all.Go(func() {
			if l.enter(ctx, client) == nil {
				mu.Lock()
				order = append(order, client)
				mu.Unlock()
				l.leave()
			}
		})
		for l.length() == before {
			time.Sleep(time.Millisecond)
		}
	}
	for range 3 {
		join("greedy", ctx)
	}
	gone, leave := as(t, "")
	join("gone", gone)
	join("modest", ctx)
	join("other", ctx)
	leave()
	for l.length() == 6 {
		time.Sleep(time.Millisecond)
	}
	l.leave()
	all.Wait()
	if want := []string{"greedy", "modest", "other", "greedy", "greedy"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	if l.free != 1 || len(l.waiting) != 0 || len(l.turns) != 0 {
		t.Errorf("afterwards %+v", l)
	}
}

func (l *line) length() int {
	_, all := l.lengths("")
	return all
}

// What nobody waits for any more ends, and is not handed to who comes later.
func TestAbandonedEnds(t *testing.T) {
	c := newCompute(newMetrics())
	begun, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	ask := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.answer(ctx, question{key: "long", cost: largeCost}, func(ctx context.Context) (any, error) {
				begun <- struct{}{}
				<-ctx.Done()
				ended <- struct{}{}
				return nil, ctx.Err()
			})
			done <- err
		}()
		return done
	}
	first, leaveFirst := as(t, "a")
	second, leaveSecond := as(t, "b")
	one := ask(first)
	<-begun
	two := ask(second)
	for c.waitersOf("long") < 2 {
		time.Sleep(time.Millisecond)
	}
	leaveFirst()
	if err := <-one; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	select {
	case <-ended:
		t.Error("it ended while somebody waited")
	case err := <-two:
		t.Errorf("who stayed got %v", err)
	default:
	}
	leaveSecond()
	<-two
	third, leaveThird := as(t, "c")
	three := ask(third)
	<-ended
	<-begun // anew
	leaveThird()
	<-three
	<-ended
	for c.busy() {
		time.Sleep(time.Millisecond)
	}
}

func (c *compute) waitersOf(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.answers.get(key); ok {
		return a.waiters
	}
	return 0
}

func (c *compute) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting != 0 || len(c.clients) != 0
}

// What panics while it computes, where no request is above it, fails alone.
func TestComputingPanics(t *testing.T) {
	c := newCompute(newMetrics())
	ctx, leave := as(t, "")
	defer leave()
	_, err := c.answer(ctx, question{key: "a bug", cost: 1}, func(context.Context) (any, error) { panic("oh") })
	if !errors.Is(err, predict.ErrFault) {
		t.Errorf("a bug: %v", err)
	}
	got, err := c.answer(ctx, question{key: "another", cost: 1}, func(context.Context) (any, error) { return 7, nil })
	if got != 7 || err != nil {
		t.Errorf("after it: %v, %v", got, err)
	}
}

// A client can fill no more than half of the line, in what it costs, and what
// takes long leaves a core to the others.
func TestClientsShare(t *testing.T) {
	c := newCompute(newMetrics())
	c.most, c.cores, c.large = 16, newLine(2), newLine(1)
	begun := make(chan string, 4)
	ask := func(client, key string, cost int) chan error {
		ctx, leave := as(t, client)
		t.Cleanup(leave)
		done := make(chan error, 1)
		go func() {
			_, err := c.answer(ctx, question{key: key, cost: cost}, func(ctx context.Context) (any, error) {
				begun <- key
				<-ctx.Done()
				return nil, ctx.Err()
			})
			done <- err
		}()
		return done
	}
	ask("greedy", "large", 100) // counts as a quarter of the line
	if got := <-begun; got != "large" {
		t.Fatal(got)
	}
	ask("greedy", "another", 100)
	for c.held("greedy") < 8 {
		time.Sleep(time.Millisecond)
	}
	if err := <-ask("greedy", "more", 1); !errors.Is(err, errBusy) {
		t.Errorf("more than half of the line: %v", err)
	}
	ask("modest", "small", 1)
	if got := <-begun; got != "small" {
		t.Errorf("%s has the core that is for others", got)
	}
}

func (c *compute) held(client string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clients[client]
}

// What is remembered is bounded in bytes, of questions and of answers.
func TestRememberedBytes(t *testing.T) {
	const size, asked = 1 << 20, 3 * rememberedBytes >> 20
	for name, one := range map[string]struct{ question, answer int }{"questions": {size, 1}, "answers": {1, size}} {
		c := newCompute(newMetrics())
		ctx, _ := as(t, "")
		for i := range asked {
			q := question{key: strconv.Itoa(i) + strings.Repeat("q", one.question), cost: 1}
			if _, err := remembered(ctx, c, q, func(context.Context) (string, error) { return strings.Repeat("a", one.answer), nil }); err != nil {
				t.Fatal(err)
			}
		}
		var held int
		c.mu.Lock()
		for key, e := range c.answers.entries {
			if a := e.Value.(*entry[*answer]).value; a.value != nil {
				held += len(key) + len(a.value.(string))
			}
		}
		c.mu.Unlock()
		if held > rememberedBytes || held < size {
			t.Errorf("%s: %d bytes are held, of at most %d", name, held, rememberedBytes)
		}
	}
}

// One client's studies leave room for others'.
func TestStudiesShare(t *testing.T) {
	c := newCompute(newMetrics())
	greedy, _ := as(t, "greedy")
	modest, _ := as(t, "modest")
	var ends []func()
	for {
		end, err := c.begin(greedy)
		if err != nil {
			break
		}
		ends = append(ends, end)
	}
	end, err := c.begin(modest)
	if err != nil || len(ends) == 0 {
		t.Fatalf("after %d of a greedy client's: %v", len(ends), err)
	}
	end()
	for _, end := range ends {
		end()
	}
	if c.studies.all != 0 || len(c.studies.taken) != 0 {
		t.Errorf("afterwards %v", c.studies.taken)
	}
}
