package admission

import (
	"sync"
	"time"
)

// Rate bounds how many requests a minute each client may make. Who was quiet for a
// minute may make all of them at once.
type Rate struct {
	most float64 // requests a minute

	mu      sync.Mutex
	clients map[string]*allowance
	swept   time.Time // when quiet clients were last forgotten
}

// allowance is what a client may ask for without waiting.
type allowance struct {
	left float64
	at   time.Time // when that was
}

// NewRate returns a bound of that many requests a minute.
func NewRate(perMinute int) *Rate {
	return &Rate{most: float64(perMinute), clients: make(map[string]*allowance)}
}

// Allow counts a request of a client. The error is a *BusyError.
func (r *Rate) Allow(client string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.sweep(now)
	a := r.clients[client]
	if a == nil {
		a = &allowance{left: r.most, at: now}
		r.clients[client] = a
	}
	a.left, a.at = min(a.left+now.Sub(a.at).Minutes()*r.most, r.most), now
	if a.left < 1 {
		wait := time.Duration((1 - a.left) / r.most * float64(time.Minute))
		return &BusyError{wait.Truncate(time.Second) + time.Second}
	}
	a.left--
	return nil
}

// sweep forgets those who may make all their requests again.
func (r *Rate) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Minute {
		return
	}
	r.swept = now
	for name, a := range r.clients {
		if now.Sub(a.at) >= time.Minute {
			delete(r.clients, name)
		}
	}
}
