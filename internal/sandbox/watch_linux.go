package sandbox

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is how often memory is counted: a program writes a GiB a second.
const watchEvery = 100 * time.Millisecond

// Watch counts what a sandbox's processes hold until the context ends, and kills
// them if it is more than they may, which is then the error. The process is the
// sandbox's first.
func Watch(ctx context.Context, pid int, memory int64) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// Processes that were forked share pages, which the quick count has several times.
		members := descendants(pid)
		if sum(members, resident) > memory && sum(members, proportional) > memory {
			_ = unix.Kill(pid, unix.SIGKILL) // all of its namespace goes with it
			return &MemoryError{Limit: memory}
		}
	}
}

// descendants are a process and all that it started. An orphan belongs to the
// first process of its namespace, so none is missed.
func descendants(pid int) []int {
	children := make(map[int][]int)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") //nolint:errcheck // the pattern is fine
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may hold anything (proc_pid_stat(5)).
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i]]...)
	}
	return out
}

func sum(pids []int, of func(pid int) int64) (total int64) {
	for _, pid := range pids {
		total += of(pid)
	}
	return total
}

// resident is what a process has in memory.
func resident(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// proportional is what it has in memory, each page divided among those that
// share it.
func proportional(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
