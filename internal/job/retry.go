package job

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An engine that restarts, or whose cluster elects a leader, is away for
// seconds. Everything here can be repeated without harm, so it is: after
// retryEvery, and after tryTime at the most, because an answer that went to a
// broken connection never comes. A server's caller waits for answerTime in all.
const (
	retryEvery = 100 * time.Millisecond
	tryTime    = 2 * time.Second
	answerTime = 15 * time.Second
)

// insist calls a function until it succeeds, the context ends, or there is no
// use in it.
func insist(ctx context.Context, f func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, tryTime)
		err := f(once)
		cancel()
		if !transient(err) {
			return err
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// answer insists, but not for longer than a caller waits for an answer.
func answer(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return insist(ctx, f)
}

// errCodeNoPeers is how a cluster says that too few of its nodes have found each
// other yet to keep as many copies as asked for.
const errCodeNoPeers jetstream.ErrorCode = 10005

// untilPeersAreThere calls a function again while a cluster that was just
// started, or lost a node, says that peers are missing, but not for long.
func untilPeersAreThere(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		err := f()
		var api *jetstream.APIError
		if !errors.As(err, &api) || api.ErrorCode != errCodeNoPeers {
			return err
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// errBehind says that a replica of the engine was asked that lags.
var errBehind = errors.New("the engine's replica is behind")

// transient reports whether an error may be gone in a moment.
func transient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == http.StatusServiceUnavailable && api.ErrorCode != errCodeStoreFailed
	}
	for _, e := range []error{
		errChanged, errBehind, context.DeadlineExceeded,
		nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
