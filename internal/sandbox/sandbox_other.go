//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os/exec"
)

// Enter returns: there are no sandboxes here.
func Enter() {}

// Command fails: there are no sandboxes here.
func (b *Box) Command(string, ...string) (*exec.Cmd, error) {
	return nil, &UnsupportedError{errors.New("it is made of Linux's namespaces")}
}

// Watch returns: there is nothing to watch.
func Watch(context.Context, int, int64) error { return nil }
