package worker

import "context"

// end notes that the worker ends, whatever a server says.
func (w *Worker) end() {
	w.mu.Lock()
	w.ending = true
	w.mu.Unlock()
	w.tell()
}

// drain is what a server told the worker: to drain, or to take jobs again. It
// reports whether that is news.
func (w *Worker) drain(drained bool) (news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drained == drained {
		return false
	}
	w.drained = drained
	close(w.turn)
	w.turn = make(chan struct{})
	w.Log.Info("told by the server", "drain", drained)
	return true
}

// rest holds a slot while the worker is drained, and ends the worker when all
// slots rest. It returns what is closed when the slot should rest again.
func (w *Worker) rest(ctx context.Context, end func()) (turn <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.drained && ctx.Err() == nil {
		w.resting++
		if w.resting == len(w.Slots) && !w.Resident {
			end()
		}
		turn = w.turn
		w.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
		}
		w.mu.Lock()
		w.resting--
	}
	return w.turn
}
