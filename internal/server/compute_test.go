package server

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"memorymark/internal/admission"
	"memorymark/internal/predict"
)

// as is a context of a client's request.
func as(t *testing.T, client string) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithValue(t.Context(), callKey{}, &call{from: client}))
}

// What no request waits for any more ends, and a later request does not get it.
func TestAbandonedEnds(t *testing.T) {
	c := newCompute(newMetrics())
	begun, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	ask := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := c.answer(ctx, question{key: "long", long: true}, func(ctx context.Context) (any, error) {
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
	<-begun // again
	leaveThird()
	<-three
	<-ended
}

func (c *compute) waitersOf(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.answers.get(key); ok {
		return a.waiters
	}
	return 0
}

// What panics while it computes, where no request is above it, fails alone.
func TestComputingPanics(t *testing.T) {
	c := newCompute(newMetrics())
	ctx, leave := as(t, "")
	defer leave()
	_, err := c.answer(ctx, question{key: "a bug"}, func(context.Context) (any, error) { panic("oh") })
	if !errors.Is(err, predict.ErrFault) {
		t.Errorf("a bug: %v", err)
	}
	got, err := c.answer(ctx, question{key: "another"}, func(context.Context) (any, error) { return 7, nil })
	if got != 7 || err != nil {
		t.Errorf("after it: %v, %v", got, err)
	}
}

// Of what takes long, one client has no more than half under way, and it leaves a core
// to the rest.
func TestLongQuestionsShare(t *testing.T) {
	c := newCompute(newMetrics())
	c.cores, c.large = admission.New(admission.Capacity{Slots: 2, Queue: admission.Unbounded}), admission.New(admission.Capacity{Slots: 1, Queue: admission.Unbounded})
	c.long = admission.New(admission.Capacity{Slots: 4, PerClient: 2, Queue: 4})
	begun := make(chan string, 4)
	ask := func(client, key string, long bool) chan error {
		ctx, leave := as(t, client)
		t.Cleanup(leave)
		done := make(chan error, 1)
		go func() {
			_, err := c.answer(ctx, question{key: key, long: long}, func(ctx context.Context) (any, error) {
				begun <- key
				<-ctx.Done()
				return nil, ctx.Err()
			})
			done <- err
		}()
		return done
	}
	for i := range 4 { // two under way, of which one has a core, and two that wait for them
		ask("greedy", "long "+strconv.Itoa(i), true)
	}
	for waiting(c.large) != 1 || waiting(c.long) != 2 {
		time.Sleep(time.Millisecond)
	}
	<-begun
	if err := <-ask("greedy", "more", true); !isA[*admission.BusyError](err) {
		t.Errorf("more than half of the queue: %v", err)
	}
	ask("modest", "long too", true)
	for waiting(c.large) != 2 {
		time.Sleep(time.Millisecond)
	}
	ask("greedy", "short", false)
	if got := <-begun; got != "short" {
		t.Errorf("%s has the core that is for the rest", got)
	}
}

// What is remembered is bounded in bytes, of questions and of answers.
func TestRememberedBytes(t *testing.T) {
	const size, asked = 1 << 20, 3 * rememberedBytes >> 20
	for name, one := range map[string]struct{ question, answer int }{"questions": {size, 1}, "answers": {1, size}} {
		c := newCompute(newMetrics())
		ctx, _ := as(t, "")
		for i := range asked {
			q := question{key: strconv.Itoa(i) + strings.Repeat("q", one.question)}
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
