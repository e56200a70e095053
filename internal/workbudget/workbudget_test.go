package workbudget_test

import (
	"errors"
	"sync"
	"testing"

	"memorymark/internal/workbudget"
)

func TestSpend(t *testing.T) {
	b := workbudget.New(100, nil)
	if err := b.Spend(100); err != nil {
		t.Errorf("what is there cannot be spent: %v", err)
	}
	for range 2 {
		if err := b.Spend(1); !errors.Is(err, workbudget.ErrTooMuch) {
			t.Errorf("%v for more than there was", err)
		}
	}
	if err := b.Err(); !errors.Is(err, workbudget.ErrTooMuch) {
		t.Errorf("an work that failed goes on: %v", err)
	}
	var none *workbudget.Budget
	if err := errors.Join(none.Spend(1<<40), none.Err()); err != nil {
		t.Errorf("no work has a bound: %v", err)
	}
}

// TestStop has a part end for those who share it, and for good.
func TestStop(t *testing.T) {
	left, gone := errors.New("the client left"), false
	b := workbudget.New(1<<40, func() error {
		if gone {
			return left
		}
		return nil
	})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				if err := b.Spend(10); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	gone = true
	if err := b.Spend(1); !errors.Is(err, left) {
		t.Errorf("%v", err)
	}
	gone = false
	if err := b.Err(); !errors.Is(err, left) {
		t.Errorf("it begins again: %v", err)
	}
}

// TestKeepingBack has a part end before the one that it spends from, and with it.
func TestKeepingBack(t *testing.T) {
	b := workbudget.New(100, nil)
	part := b.KeepingBack(30)
	if err := part.Spend(70); err != nil {
		t.Errorf("what is there cannot be spent: %v", err)
	}
	for range 2 {
		if err := part.Spend(1); !errors.Is(err, workbudget.ErrTooMuch) {
			t.Errorf("%v for what is to be left", err)
		}
	}
	if err := b.Spend(30); err != nil {
		t.Errorf("what was left cannot be spent: %v", err)
	}
	left := errors.New("the client left")
	if err := workbudget.New(100, func() error { return left }).KeepingBack(1).Spend(1); !errors.Is(err, left) {
		t.Errorf("%v", err)
	}
}

// BenchmarkSpend is what asking costs. A process asks once for 128 tensors, which
// take some 50 µs, and an allocator once for 4,096 events, which take some 400 µs.
func BenchmarkSpend(b *testing.B) {
	work := workbudget.New(1<<62, b.Context().Err)
	for b.Loop() {
		if err := work.Spend(512); err != nil {
			b.Fatal(err)
		}
	}
}
