package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"memorymark/internal/job"
)

// insistent is a server that repeats an order with every heartbeat, as one does
// while a worker that ends is told to take jobs again.
type insistent struct {
	Server
	beats atomic.Int64
}

func (*insistent) Join(context.Context, job.Announcement) (job.Membership, error) {
	return job.Membership{ID: "w", LeaseSeconds: 30}, nil
}

func (s *insistent) Heartbeat(context.Context, string, job.Announcement, time.Duration) (job.Orders, error) {
	if s.beats.Add(1) > 1000 {
		time.Sleep(time.Minute) // so that the test ends
	}
	return job.Orders{Drain: new(bool)}, nil
}

func (*insistent) Take(ctx context.Context, _, _ string, _ time.Duration) (*job.Job, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*insistent) Leave(context.Context, string) error { return nil }

// An order that a worker cannot follow is no reason to ask again at once.
func TestRepeatedOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &insistent{}
		w, err := Join(t.Context(), s, Config{Slots: []Slot{{Card: job.Card{ID: "t4"}}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if n := s.beats.Load(); n < 10 || n > 42 {
			t.Errorf("%d heartbeats in 10 s", n)
		}
	})
}
