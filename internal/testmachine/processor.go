package testmachine

import (
	"syscall"
	"testing"
	"time"
)

// ProcessorTime is how much time of the processor this process has had, the collector's too.
// Unlike the time on the clock it does not depend on what else the machine does.
func ProcessorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
