package server

import "container/list"

// recent keeps values within a budget. When they are too many, those go first
// that were not asked for for longest. It has no lock of its own.
type recent[V comparable] struct {
	budget, held int64
	entries      map[string]*list.Element // of *entry
	order        *list.List               // the latest used first
}

// entry is a value and what it takes of the budget.
type entry[V comparable] struct {
	key   string
	value V
	cost  int64
}

func newRecent[V comparable](budget int64) *recent[V] {
	return &recent[V]{budget: budget, entries: make(map[string]*list.Element), order: list.New()}
}

// get returns the value of a key.
func (r *recent[V]) get(key string) (value V, ok bool) {
	e, ok := r.entries[key]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*entry[V]).value, true
}

// put keeps a value, or updates what it costs. Others are dropped until the budget is
// kept, but not those whose cost is still 0: they are on their way in.
func (r *recent[V]) put(key string, value V, cost int64) {
	r.remove(key)
	r.entries[key] = r.order.PushFront(&entry[V]{key, value, cost})
	r.held += cost
	for e := r.order.Back(); r.held > r.budget && e != r.order.Front(); {
		before := e.Prev()
		if old := e.Value.(*entry[V]); old.cost > 0 {
			r.remove(old.key)
		}
		e = before
	}
}

// oldest returns the value that was not asked for for longest.
func (r *recent[V]) oldest() (value V, ok bool) {
	e := r.order.Back()
	if e == nil {
		return value, false
	}
	return e.Value.(*entry[V]).value, true
}

// remove drops a key.
func (r *recent[V]) remove(key string) {
	e, ok := r.entries[key]
	if !ok {
		return
	}
	r.order.Remove(e)
	delete(r.entries, key)
	r.held -= e.Value.(*entry[V]).cost
}

// removeValue drops a key if it still has a value.
func (r *recent[V]) removeValue(key string, value V) {
	if e, ok := r.entries[key]; ok && e.Value.(*entry[V]).value == value {
		r.remove(key)
	}
}
