package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoSpace says that nothing can be stored now.
var ErrNoSpace = errors.New("the server cannot store anything now")

var (
	errDiskFull    = fmt.Errorf("%w: its disk is full; it continues by itself when there is space", ErrNoSpace)
	errDiskFailing = fmt.Errorf("%w: its disk refuses writes; it continues by itself when writes succeed, and its log has the error", ErrNoSpace)
)

// spareBytes must be free for a job to be accepted. They are for the results of
// those that were.
const spareBytes = 32 << 20

// storage is what is known of the disk of the embedded engine. A stream of the
// engine that failed to write once never writes again, and does not even answer.
// The engine must then be restarted, as soon as its disk can be written.
type storage struct {
	dir string // "" with an outside cluster

	mu      sync.Mutex
	failure error
	failed  chan struct{} // closed while there is a failure

	proving sync.Mutex
	proved  time.Time // when a durable write was last tried
	proof   error     // what came of it
}

func newStorage(dir string) *storage { return &storage{dir: dir, failed: make(chan struct{})} }

// How the engine's log says that it has given up writing.
var givenUp = []string{"Critical write error", "disabling JetStream", "JetStream failed to store a msg"}

// heard looks for a failure in what the engine logs.
func (s *storage) heard(text string) {
	for _, sign := range givenUp {
		if strings.Contains(text, sign) {
			s.fail(text)
			return
		}
	}
}

func (s *storage) fail(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return
	}
	s.failure = errDiskFailing
	if strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, syscall.EDQUOT.Error()) {
		s.failure = errDiskFull
	}
	close(s.failed)
}

func (s *storage) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		s.failure, s.failed = nil, make(chan struct{})
	}
}

// state returns a channel that is closed when the engine cannot write, and why it
// cannot.
func (s *storage) state() (failed <-chan struct{}, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed, s.failure
}

// check reports whether a new job can be stored.
func (s *storage) check() error {
	if _, err := s.state(); err != nil || s.dir == "" {
		return err
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &disk); err != nil {
		return nil //nolint:nilerr // a disk that does not say is tried
	}
	if disk.Bavail*uint64(disk.Bsize) < spareBytes {
		return errDiskFull
	}
	return nil
}

// writable tries whether the folder takes a file and keeps it.
func (s *storage) writable() bool {
	if (&storage{dir: s.dir}).check() != nil {
		return false
	}
	path := filepath.Join(s.dir, ".probe")
	defer os.Remove(path)
	f, err := os.Create(path)
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, 1<<20))
	return errors.Join(err, f.Sync(), f.Close()) == nil
}

// whileStorable runs something that stores, and ends it with ErrNoSpace as soon
// as the engine cannot write any more: it would never answer.
func (q *Queue) whileStorable(ctx context.Context, do func(context.Context) error) error {
	failed, err := q.storage.state()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-failed:
			_, err := q.storage.state()
			cancel(cmp.Or(err, errDiskFailing)) // which may just be over
		case <-ctx.Done():
		}
	}()
	err = do(ctx)
	if err != nil && errors.Is(context.Cause(ctx), ErrNoSpace) {
		return context.Cause(ctx)
	}
	return err
}

// answerStored is answer for something that stores.
func (q *Queue) answerStored(ctx context.Context, do func(context.Context) error) error {
	return q.whileStorable(ctx, func(ctx context.Context) error { return answer(ctx, do) })
}

// How long a proof is good for, and how long one may take.
const (
	proofAge  = time.Second
	proofTime = 2 * time.Second
)

// proveWrite has the engine store something durably, at most once in a second.
func (q *Queue) proveWrite(ctx context.Context) error {
	s := q.storage
	s.proving.Lock()
	defer s.proving.Unlock()
	if time.Since(s.proved) < proofAge {
		return s.proof
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofTime)
	defer cancel()
	s.proof = q.whileStorable(ctx, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, proofSubject, []byte(q.now().UTC().Format(time.RFC3339)), jetstream.WithRetryAttempts(0))
		return err
	})
	if s.proof != nil && !errors.Is(s.proof, ErrNoSpace) {
		s.proof = fmt.Errorf("a write was not confirmed: %w", s.proof)
	}
	s.proved = time.Now()
	return s.proof
}

// reviveEvery is how often a disk that failed is tried again.
const reviveEvery = 250 * time.Millisecond

// keepEngine restarts the embedded engine whenever its disk has failed and can be
// written again, until the context ends.
func (q *Queue) keepEngine(ctx context.Context) {
	for {
		failed, _ := q.storage.state()
		select {
		case <-failed:
		case <-ctx.Done():
			return
		}
		_, err := q.storage.state()
		q.config.Log.Error("the disk cannot be written; analyses are refused until it can", "error", err, "data", q.config.Dir)
		for !q.storage.writable() || q.restart(ctx) != nil {
			select {
			case <-time.After(reviveEvery):
			case <-ctx.Done():
				return
			}
		}
		q.config.Log.Info("the disk can be written again")
	}
}

// restart replaces the engine. The connection finds the new one by itself.
func (q *Queue) restart(ctx context.Context) (err error) {
	defer func() {
		if err != nil && ctx.Err() == nil {
			q.config.Log.Warn("start the engine again", "error", err)
		}
	}()
	q.unfollow()
	old := q.engine.Load()
	old.stop()
	fresh, err := startEngine(q.config, q.storage.heard)
	if err != nil {
		return err
	}
	q.engine.Store(fresh)
	q.storage.heal() // from here on, what fails is news
	if err := answer(ctx, func(ctx context.Context) error { return q.conn.FlushWithContext(ctx) }); err != nil {
		return err
	}
	return q.follow(ctx)
}
