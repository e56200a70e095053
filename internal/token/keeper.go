package token

import (
	"os"
	"slices"
	"sync"
	"time"
)

// Keeper finds tokens in a file that others change: one that was created or
// deleted counts at once.
type Keeper struct {
	path string

	mu   sync.Mutex
	list *List
	at   time.Time // when the file that was read had changed
	size int64
}

// NewKeeper reads the tokens of a file.
func NewKeeper(path string) (*Keeper, error) {
	k := &Keeper{path: path}
	_, err := k.current()
	return k, err
}

// Count is how many tokens there are.
func (k *Keeper) Count() (int, error) {
	l, err := k.current()
	if err != nil {
		return 0, err
	}
	return len(l.Tokens), nil
}

// Find returns the token of a secret.
func (k *Keeper) Find(secret string) (Token, bool, error) {
	l, err := k.current()
	if err != nil {
		return Token{}, false, err
	}
	t, ok := l.Find(secret, time.Now())
	return t, ok, nil
}

// Holds reports whether a token that was found is still there and has not
// expired.
func (k *Keeper) Holds(t Token) (bool, error) {
	l, err := k.current()
	if err != nil {
		return false, err
	}
	now := time.Now()
	return slices.ContainsFunc(l.Tokens, func(other Token) bool { return other.Hash == t.Hash && other.Role == t.Role && !other.expired(now) }), nil
}

// current is the list, read again if the file has changed.
func (k *Keeper) current() (*List, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var at time.Time
	var size int64
	if info, err := os.Stat(k.path); err == nil {
		at, size = info.ModTime(), info.Size()
	}
	if k.list != nil && at.Equal(k.at) && size == k.size {
		return k.list, nil
	}
	l, err := Open(k.path)
	if err != nil {
		return nil, err
	}
	k.list, k.at, k.size = l, at, size
	return l, nil
}
