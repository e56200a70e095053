// Package lockfile lets one process at a time have a folder or change a file.
// The operating system gives a lock back when its process ends, however it
// ends, so that nothing has to be cleaned up after a crash.
//
//	lock, err := lockfile.Try("data/lock")
//	if errors.Is(err, lockfile.ErrHeld) { … }
//	defer lock.Close()
package lockfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrHeld says that another process has the lock.
var ErrHeld = errors.New("another process has the lock")

// Lock is held until it is closed or the process ends.
type Lock struct{ f *os.File }

// Try takes a lock, or reports ErrHeld at once.
func Try(path string) (*Lock, error) { return take(path, false) }

// Wait takes a lock as soon as no other process has it.
func Wait(path string) (*Lock, error) { return take(path, true) }

func take(path string, wait bool) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for {
		err = lock(f, wait)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		f.Close()
		return nil, ErrHeld
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{f}, nil
}

// Note leaves a line for those who find the lock held, as who has it. The lock
// does not rest on it.
func (l *Lock) Note(text string) error {
	if err := l.f.Truncate(0); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	_, err := l.f.WriteAt([]byte(text+"\n"), 0)
	return err
}

// Close gives the lock back. The file stays: if it were removed, two processes
// could lock two files of one name.
func (l *Lock) Close() error { return l.f.Close() }

// Note is what the holder of a lock left there, "" if nothing.
func Note(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
