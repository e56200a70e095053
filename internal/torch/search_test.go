package torch

import (
	"errors"
	"testing"

	"memorymark/internal/workbudget"
)

// TestSearchesAreCounted: looking for a parameter in the list of a deep model takes
// from the work, and interrupts a process that has none left.
func TestSearchesAreCounted(t *testing.T) {
	p := New(Device{})
	for range 3 * searchedPerEvent {
		p.Parameter(Float32, 1)
	}
	p.Budget = workbudget.New(5, nil)
	p.unlist(p.parameters[7])
	if p.Budget.Err() != nil || len(p.parameters) != 3*searchedPerEvent-1 {
		t.Fatalf("%d parameters, %v", len(p.parameters), p.Budget.Err())
	}
	defer func() {
		if i, ok := recover().(Interruption); !ok || !errors.Is(i.Err, workbudget.ErrTooMuch) {
			t.Errorf("it ended with %v", i.Err)
		}
	}()
	p.unlist(p.parameters[7])
	p.unlist(p.parameters[7])
	t.Error("it goes on")
}
