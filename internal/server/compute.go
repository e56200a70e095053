package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"memorymark/internal/predict"
)

// errBusy says that too much is waiting to be computed.
var errBusy = errors.New("too many predictions are waiting; try again in a second")

// mostWaiting is how much may wait or be computed, in predictions of a model of
// a dozen layers, and of that no client more than half. Beyond it a refusal at
// once is worth more than an answer too late.
const mostWaiting = 512

// rememberedBytes is about what the answers that are kept may take, with their
// questions: thousands of usual ones, of some kilobytes each.
const rememberedBytes = 128 << 20

// compute runs what keeps a core busy: no more at a time than there are cores,
// equal requests once, and with the latest answers at hand. That is honest
// because the same workload always gets the same answer.
type compute struct {
	metrics *metrics
	cores   *line
	// large are questions that take long. They leave a core to the others, where
	// there is more than one.
	large *line

	most int // that may wait, as mostWaiting

	mu      sync.Mutex
	answers *recent[*answer]
	waiting int            // what waits or is computed
	clients map[string]int // whose that is
	studies *places        // of what is computed piece by piece
}

// answer is one that is known or being computed.
type answer struct {
	question
	done  chan struct{} // closed when value and err are set
	value any
	err   error

	waiters int    // who wait for it
	cancel  func() // ends the computing
}

// question is something to be computed.
type question struct {
	key    string // equal ones have equal keys
	client string // who asked first
	cost   int    // about, in predictions
	large  bool   // it takes long
	pieces bool   // it enters the line piece by piece, by itself

	progress *progress // how far it is, nil if that is not known
}

// progress is how many of so many parts are done.
type progress struct{ done, of atomic.Int64 }

func (p *progress) tell(done, of int) {
	p.done.Store(int64(done))
	p.of.Store(int64(of))
}

// largeCost is from where on a question is large.
const largeCost = 8

func newCompute(m *metrics) *compute {
	cores := runtime.GOMAXPROCS(0)
	return &compute{
		metrics: m, most: mostWaiting, cores: newLine(cores), large: newLine(max(cores-1, 1)),
		answers: newRecent[*answer](rememberedBytes), clients: make(map[string]int), studies: newPlaces(mostStudies),
	}
}

// answer returns what is remembered under a key, else computes it. The
// computing goes on when the caller leaves while others wait for the same, and
// ends with the last of them.
func (c *compute) answer(ctx context.Context, q question, do func(context.Context) (any, error)) (any, error) {
	return c.follow(ctx, q, do, nil, nil)
}

// follow is answer, and says how far it is whenever it is asked to.
func (c *compute) follow(ctx context.Context, q question, do func(context.Context) (any, error), asked <-chan time.Time, say func(*progress)) (any, error) {
	a, err := c.find(ctx, q, do)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case <-a.done:
			return a.value, a.err
		case <-asked:
			say(a.progress)
		case <-ctx.Done():
			c.abandon(a)
			return nil, ctx.Err()
		}
	}
}

// find returns the answer of a key; if there is none it begins to compute it.
func (c *compute) find(ctx context.Context, q question, do func(context.Context) (any, error)) (*answer, error) {
	callOf(ctx).read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.answers.get(q.key); ok {
		c.metrics.answers.WithLabelValues("remembered").Inc()
		a.waiters++
		return a, nil
	}
	q.client, q.large = callOf(ctx).client(), q.cost >= largeCost
	q.cost = min(q.cost, max(c.most/4, 1)) // the largest one can be asked, too
	if c.waiting+q.cost > c.most || c.clients[q.client]+q.cost > max(c.most/2, 1) {
		c.metrics.answers.WithLabelValues("refused").Inc()
		return nil, errBusy
	}
	c.metrics.answers.WithLabelValues("computed").Inc()
	c.waiting += q.cost
	c.clients[q.client] += q.cost
	a := &answer{question: q, done: make(chan struct{}), waiters: 1}
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.answers.put(q.key, a, int64(len(q.key)))
	go c.run(ctx, a, do)
	return a, nil
}

// abandon counts out somebody who waited.
func (c *compute) abandon(a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.waiters--; a.waiters == 0 {
		a.cancel()
		c.answers.removeValue(a.key, a) // who comes now begins anew
	}
}

func (c *compute) run(ctx context.Context, a *answer, do func(context.Context) (any, error)) {
	defer a.cancel()
	if a.pieces {
		a.value, a.err = recovering(func() (any, error) { return do(ctx) })
	} else {
		a.err = c.onCore(ctx, a.large, func() (err error) {
			a.value, err = do(ctx)
			return err
		})
	}
	size := a.size()
	c.mu.Lock()
	defer c.mu.Unlock()
	close(a.done)
	c.waiting -= a.cost
	if c.clients[a.client] -= a.cost; c.clients[a.client] == 0 {
		delete(c.clients, a.client)
	}
	if a.err != nil {
		c.answers.removeValue(a.key, a) // errors are cheap to find again, and may pass
	} else if now, ok := c.answers.get(a.key); ok && now == a { // it was not forgotten meanwhile
		c.answers.put(a.key, a, size)
	}
}

// size is about how many bytes an answer takes with its question. What is a
// megabyte as JSON is some in memory.
func (a *answer) size() int64 {
	const inMemory = 3
	text, err := json.Marshal(a.value)
	if err != nil {
		return rememberedBytes // which is not kept
	}
	return int64(len(a.key) + inMemory*len(text))
}

// onCore waits for a core and computes something on it.
func (c *compute) onCore(ctx context.Context, large bool, do func() error) error {
	client := callOf(ctx).client()
	if large {
		if err := c.large.enter(ctx, client); err != nil {
			return err
		}
		defer c.large.leave()
	}
	if err := c.cores.enter(ctx, client); err != nil {
		return err
	}
	defer c.cores.leave()
	_, err := recovering(func() (any, error) { return nil, do() })
	return err
}

// mostStudies is how many requests may be computed piece by piece at a time, and
// of those no client's more than half; each holds what it has so far.
const mostStudies = 8

// begin counts in a request that is computed piece by piece.
func (c *compute) begin(ctx context.Context) (end func(), err error) {
	call := callOf(ctx)
	call.read()
	c.mu.Lock()
	full := c.waiting >= c.most
	c.mu.Unlock()
	if !full {
		if end, ok := c.studies.enter(call.client()); ok {
			return end, nil
		}
	}
	c.metrics.answers.WithLabelValues("refused").Inc()
	return nil, errBusy
}

// piece waits for a core and computes a part of something on it. Between the
// pieces of one request others get their turn.
func (c *compute) piece(ctx context.Context, do func() error) error { return c.onCore(ctx, false, do) }

// largePiece is piece for one that takes long.
func (c *compute) largePiece(ctx context.Context, do func() error) error {
	return c.onCore(ctx, true, do)
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
func remembered[T any](ctx context.Context, c *compute, q question, do func(context.Context) (T, error)) (T, error) {
	value, err := c.answer(ctx, q, func(ctx context.Context) (any, error) { return do(ctx) })
	if err != nil {
		var none T
		return none, err
	}
	return value.(T), nil
}
