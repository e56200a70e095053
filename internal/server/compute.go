package server

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"memorymark/internal/admission"
	"memorymark/internal/predict"
)

// rememberedBytes is about what the answers that are kept may take, with their
// questions: thousands of usual ones, of some kilobytes each.
const rememberedBytes = 128 << 20

// maxLong is how many questions that take long are answered at a time, at least: each
// holds what it has so far.
const maxLong = 4

// compute runs what keeps a core busy: no more at a time than there are cores,
// equal requests once, and with the latest answers at hand. That is honest
// because the same workload always gets the same answer.
type compute struct {
	metrics *metrics
	// cores admits what computes. What waits for it, or for large, holds a slot of a
	// request or of a long question, so their queues need no bound.
	cores *admission.Gate
	large *admission.Gate // of that, what takes long: it leaves a core to the rest, where there is more than one
	long  *admission.Gate // questions that take long, from their first piece to their last

	mu      sync.Mutex
	answers *recent[*answer]
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
	long   bool   // it takes long
	pieces bool   // it waits for a core piece by piece, by itself

	progress *progress // how far it is, nil if that is not known
}

// progress is how many of all parts are done.
type progress struct{ done, of atomic.Int64 }

func (p *progress) tell(done, of int) {
	p.done.Store(int64(done))
	p.of.Store(int64(of))
}

func newCompute(m *metrics) *compute {
	cores := int64(runtime.GOMAXPROCS(0))
	long := max(cores, maxLong)
	return &compute{
		metrics: m, answers: newRecent[*answer](rememberedBytes),
		cores: admission.New(admission.Capacity{Slots: cores, Queue: admission.Unbounded}),
		large: admission.New(admission.Capacity{Slots: max(cores-1, 1), Queue: admission.Unbounded}),
		long:  admission.New(admission.Capacity{Slots: long, PerClient: long / 2, Queue: 512}),
	}
}

// answer returns what is remembered under a key, else computes it. The
// computing continues when the caller leaves while others wait for the same, and
// ends with the last of them.
func (c *compute) answer(ctx context.Context, q question, do func(context.Context) (any, error)) (any, error) {
	return c.follow(ctx, q, do, nil, nil)
}

// follow is answer, and says how far it is whenever it is asked to.
func (c *compute) follow(ctx context.Context, q question, do func(context.Context) (any, error), asked <-chan time.Time, say func(*progress)) (any, error) {
	a := c.find(ctx, q, do)
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
func (c *compute) find(ctx context.Context, q question, do func(context.Context) (any, error)) *answer {
	callOf(ctx).endParse()
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, ok := c.answers.get(q.key); ok {
		c.metrics.answers.WithLabelValues("remembered").Inc()
		a.waiters++
		return a
	}
	a := &answer{question: q, done: make(chan struct{}), waiters: 1}
	ctx, a.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.answers.put(q.key, a, int64(len(q.key)))
	go c.run(ctx, a, do)
	return a
}

// abandon counts out one that waited.
func (c *compute) abandon(a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.waiters--; a.waiters == 0 {
		a.cancel()
		c.answers.removeValue(a.key, a) // the next request starts again
	}
}

func (c *compute) run(ctx context.Context, a *answer, do func(context.Context) (any, error)) {
	defer a.cancel()
	a.err = c.inTurn(ctx, a.question, func() (err error) {
		a.value, err = do(ctx)
		return err
	})
	size := a.size()
	c.mu.Lock()
	defer c.mu.Unlock()
	close(a.done)
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

// inTurn computes the answer to a question when its turn has come.
func (c *compute) inTurn(ctx context.Context, q question, do func() error) error {
	if q.long {
		end, err := c.begin(ctx)
		if err != nil {
			return err
		}
		defer end()
	}
	c.metrics.answers.WithLabelValues("computed").Inc()
	if q.pieces {
		return recovering(do)
	}
	return c.onCore(ctx, q.long, do)
}

// begin waits for the turn of a question that takes long.
func (c *compute) begin(ctx context.Context) (end func(), err error) {
	call := callOf(ctx)
	call.endParse()
	end, err = c.long.Acquire(ctx, call.client(), 1)
	if isA[*admission.BusyError](err) {
		c.metrics.answers.WithLabelValues("refused").Inc()
	}
	return end, err
}

// onCore waits for a core and computes something on it.
func (c *compute) onCore(ctx context.Context, large bool, do func() error) error {
	client := callOf(ctx).client()
	if large {
		release, err := c.large.Acquire(ctx, client, 1)
		if err != nil {
			return err
		}
		defer release()
	}
	release, err := c.cores.Acquire(ctx, client, 1)
	if err != nil {
		return err
	}
	defer release()
	return recovering(do)
}

// piece waits for a core and computes a part of something on it. Between the
// pieces of one request others get their turn.
func (c *compute) piece(ctx context.Context, do func() error) error { return c.onCore(ctx, false, do) }

// largePiece is piece for one that takes long.
func (c *compute) largePiece(ctx context.Context, do func() error) error {
	return c.onCore(ctx, true, do)
}

// recovering makes an error of a panic: no handler above would catch it here.
func recovering(do func() error) (err error) {
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
