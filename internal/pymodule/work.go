package pymodule

import (
	"errors"

	"memorymark/internal/torch"
	"memorymark/internal/workbudget"
)

// This file bounds what evaluating Python takes. A configuration says how often loops run
// and how many modules there are, so whatever does more for another configuration is
// charged before it is done.

// What things cost, in events that an allocator plays (workbudget). Those that keep memory
// cost more than their time, so that no budget buys too much of it.
const (
	roundWork    = 2  // of a loop
	callWork     = 4  // of a function, in addition to what it does
	objectWork   = 16 // with its attributes
	moduleWork   = 50
	elementWork  = 4  // of a list, a dictionary, a vector
	lookupsAWork = 16 // elements of a list that are gone through

	maxModules = 60_000    // of a model: a hundred megabytes
	configWork = 1_000_000 // of evaluating a configuration alone
	unchecked  = 1 << 10   // events between two looks at the budget
)

// spend charges work that is about to be done, and interrupts the process if that is too
// much.
func (m *Machine) spend(events int64) {
	if m.unspent += events; m.unspent < unchecked {
		return
	}
	if err := m.budget.Spend(int(m.unspent)); err != nil {
		panic(torch.Interruption{Err: err})
	}
	m.unspent = 0
}

// spendElements charges n elements that are about to be made. More than a billion
// would end any budget.
func (m *Machine) spendElements(n int64) { m.spend(elementWork * min(max(n, 0), 1<<30)) }

// countModule charges a module that is about to be made.
func (m *Machine) countModule() {
	m.spend(moduleWork)
	if m.modulesMade++; m.modulesMade > maxModules {
		panic(torch.Interruption{Err: workbudget.ErrTooMuch})
	}
}

// catchInterruption makes an error of what interrupted a process.
func catchInterruption(err *error) {
	switch r := recover().(type) {
	case nil:
	case torch.Interruption:
		*err = r.Err
	default:
		panic(r)
	}
}

// unlessTooMuch leaves an error out that says no more than that the budget ended.
func unlessTooMuch(err error) error {
	if errors.Is(err, workbudget.ErrTooMuch) {
		return nil
	}
	return err
}
