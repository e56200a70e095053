package admission

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func acquire(t *testing.T, g *Gate, client string, weight int64) func() {
	t.Helper()
	release, err := g.Acquire(t.Context(), client, weight)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// empty reports whether no one has a slot or waits for one, and nothing is left of those
// who did.
func (g *Gate) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken == 0 && g.waiting == 0 && len(g.clients) == 0 && len(g.turns) == 0
}

// Clients take turns, however many requests each of them has in the queue.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Capacity{Slots: 1, Queue: 10})
		first := acquire(t, g, "first", 1)
		var order []string
		join := func(ctx context.Context, client string) {
			go func() {
				if release, err := g.Acquire(ctx, client, 1); err == nil {
					order = append(order, client)
					release()
				}
			}()
			synctest.Wait()
		}
		for range 3 {
			join(t.Context(), "greedy")
		}
		leaving, leave := context.WithCancel(t.Context())
		join(leaving, "gone")
		join(t.Context(), "modest")
		join(t.Context(), "other")
		leave()
		synctest.Wait()
		first()
		synctest.Wait()
		if want := []string{"greedy", "modest", "other", "greedy", "greedy"}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
		if !g.empty() {
			t.Error("something is left")
		}
	})
}

// One client has no more than its share, and lets others go first.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Capacity{Slots: 4, PerClient: 2, Queue: 8})
		one, two := acquire(t, g, "greedy", 1), acquire(t, g, "greedy", 1)
		third := make(chan func())
		go func() { third <- acquire(t, g, "greedy", 1) }()
		synctest.Wait()
		other := acquire(t, g, "modest", 9) // of which it gets its share
		if taken, waiting := g.Load(); taken != 4 || waiting != 1 {
			t.Errorf("%d slots are taken, %d wait", taken, waiting)
		}
		one()
		one() // once is enough
		for _, release := range []func(){<-third, two, other} {
			release()
		}
		if !g.empty() {
			t.Error("something is left")
		}
	})
}

// A heavy request is not overtaken for ever.
func TestHeavy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Capacity{Slots: 4, Queue: 8})
		light := acquire(t, g, "a", 1)
		var order []string
		ask := func(name string, weight int64) {
			go func() {
				release := acquire(t, g, name, weight)
				order = append(order, name)
				time.Sleep(time.Second)
				release()
			}()
			synctest.Wait()
		}
		ask("heavy", 4)
		ask("light", 1)
		light()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if !slices.Equal(order, []string{"heavy", "light"}) || !g.empty() {
			t.Errorf("%v", order)
		}
	})
}

// A full queue refuses at once, and says when those who wait will have been served.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Capacity{Slots: 2, Queue: 8})
		for _, least := range []time.Duration{minRetry, 40 * time.Second} { // at first it is not known how long it takes
			for i := range 10 {
				go func() {
					release := acquire(t, g, "client "+strconv.Itoa(i%2), 1)
					time.Sleep(10 * time.Second)
					release()
				}()
				synctest.Wait() // they come in order
			}
			for _, client := range []string{"client 0", "another"} {
				_, err := g.Acquire(t.Context(), client, 1)
				var busy *BusyError
				if !errors.As(err, &busy) || busy.RetryAfter < least || busy.RetryAfter > least+10*time.Second {
					t.Errorf("%s: %v, want %v or a little more", client, err, least)
				}
			}
			time.Sleep(time.Minute)
		}
		if !g.empty() {
			t.Error("something is left")
		}
	})
}

// Without a queue there is a slot or there is none.
func TestNoQueue(t *testing.T) {
	g := New(Capacity{Slots: 1})
	release := acquire(t, g, "", 1)
	var busy *BusyError
	if _, err := g.Acquire(t.Context(), "", 1); !errors.As(err, &busy) || g.waiting != 0 {
		t.Errorf("a second one: %v", err)
	}
	release()
	acquire(t, g, "", 1)()
}

// Whatever comes and goes, no more is taken than there is, and all are served.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Capacity{Slots: 5, PerClient: 3, Queue: Unbounded})
		random := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			client, weight, lasts := strconv.Itoa(random.IntN(7)), 1+random.Int64N(4), time.Duration(random.IntN(20))*time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2000))*time.Millisecond)
			go func() {
				defer cancel()
				release, err := g.Acquire(ctx, client, weight)
				if err != nil {
					return
				}
				g.mu.Lock()
				if g.taken > 5 || g.clients[client].taken > 3 {
					t.Errorf("%d are taken, %d by one client", g.taken, g.clients[client].taken)
				}
				g.mu.Unlock()
				time.Sleep(lasts)
				release()
			}()
		}
		time.Sleep(time.Minute)
		if !g.empty() {
			t.Error("something is left")
		}
	})
}

// A client that asks too often is told when its next request is allowed.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRate(6)
		for range 6 {
			if err := r.Allow("often"); err != nil {
				t.Fatal(err)
			}
		}
		var busy *BusyError
		if err := r.Allow("often"); !errors.As(err, &busy) {
			t.Fatalf("the seventh in a minute: %v", err)
		}
		if err := r.Allow("another"); err != nil {
			t.Errorf("another client: %v", err)
		}
		time.Sleep(busy.RetryAfter)
		if err := r.Allow("often"); err != nil {
			t.Errorf("%v later: %v", busy.RetryAfter, err)
		}
		time.Sleep(2 * time.Minute)
		if err := r.Allow("third"); err != nil || len(r.clients) != 1 {
			t.Errorf("%v; %d clients are remembered", err, len(r.clients))
		}
	})
}
