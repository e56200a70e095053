//go:build !js

package emulate

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// atEnd reports whether a pipe has nothing left and no process writes to it.
func atEnd(f *os.File) bool {
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	_, err := unix.Poll(poll, 0)
	return err == nil && poll[0].Revents&(unix.POLLIN|unix.POLLHUP) == unix.POLLHUP
}

func signalName(number int) string { return unix.SignalName(syscall.Signal(number)) }
