package server

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"memorymark/internal/predict"
)

// errBusy says that too much is waiting to be computed.
var errBusy = errors.New("too many predictions are waiting; try again in a second")

// mostWaiting is how many computations may wait for a core. Beyond it a
// refusal at once is worth more than an answer too late.
const mostWaiting = 512

// mostRemembered is how many answers are kept, some kilobytes each.
const mostRemembered = 4096

// compute runs what keeps a core busy: no more at a time than there are cores,
// equal requests once, and with the latest answers at hand. That is honest
// because the same workload always gets the same answer.
type compute struct {
	metrics *metrics
	cores   chan struct{}

	most int // that may wait

	mu      sync.Mutex
	answers *recent[*answer]
	waiting int
	studies int // being computed piece by piece
}

// answer is one that is known or being computed.
type answer struct {
	key   string
	done  chan struct{} // closed when value and err are set
	value any
	err   error
}

func newCompute(m *metrics) *compute {
	return &compute{
		metrics: m, most: mostWaiting, cores: make(chan struct{}, runtime.GOMAXPROCS(0)),
		answers: newRecent[*answer](mostRemembered),
	}
}

// answer returns what is remembered under a key, else computes it. The
// computing goes on when the caller leaves: others may wait for the same.
func (c *compute) answer(ctx context.Context, key string, do func() (any, error)) (any, error) {
	a, err := c.find(key, do)
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find returns the answer of a key; if there is none it begins to compute it.
func (c *compute) find(key string, do func() (any, error)) (*answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.answers.get(key); ok {
		c.metrics.answers.WithLabelValues("remembered").Inc()
		return a, nil
	}
	if c.waiting >= c.most {
		c.metrics.answers.WithLabelValues("refused").Inc()
		return nil, errBusy
	}
	c.metrics.answers.WithLabelValues("computed").Inc()
	c.waiting++
	a := &answer{key: key, done: make(chan struct{})}
	c.answers.put(key, a, 1)
	go c.run(a, do)
	return a, nil
}

func (c *compute) run(a *answer, do func() (any, error)) {
	c.cores <- struct{}{}
	a.value, a.err = recovering(do)
	<-c.cores
	close(a.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting--
	if a.err != nil {
		c.answers.removeValue(a.key, a) // errors are cheap to find again, and may pass
	}
}

// mostStudies is how many requests may be computed piece by piece at a time;
// each holds what it has so far.
const mostStudies = 8

// begin counts in a request that is computed piece by piece.
func (c *compute) begin() (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.studies >= mostStudies || c.waiting >= c.most {
		c.metrics.answers.WithLabelValues("refused").Inc()
		return nil, errBusy
	}
	c.studies++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.studies--
	}, nil
}

// piece waits for a core and computes something on it. Between the pieces of
// one request others get their turn.
func (c *compute) piece(ctx context.Context, do func() error) error {
	select {
	case c.cores <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.cores }()
	_, err := recovering(func() (any, error) { return nil, do() })
	return err
}

// recovering makes an error of a panic: nobody above would catch it here.
func recovering(do func() (any, error)) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v; %w", p, predict.ErrFault)
		}
	}()
	return do()
}

// forget drops what is remembered under a key.
func (c *compute) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers.remove(key)
}

// remembered is compute.answer for a type.
func remembered[T any](ctx context.Context, c *compute, key string, do func() (T, error)) (T, error) {
	value, err := c.answer(ctx, key, func() (any, error) { return do() })
	if err != nil {
		var none T
		return none, err
	}
	return value.(T), nil
}
