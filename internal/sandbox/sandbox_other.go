//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// Enter returns: there are no sandboxes here.
func Enter() {}

// Command fails: there are no sandboxes here.
func (b *Box) Command(string, ...string) (*exec.Cmd, error) {
	return nil, &UnsupportedError{errors.New("it is made of Linux's namespaces")}
}

// Watch returns: there is nothing to watch.
func Watch(context.Context, int, int64, time.Duration) error { return nil }

// MachineMemory is not known here.
func MachineMemory() int64 { return 0 }
