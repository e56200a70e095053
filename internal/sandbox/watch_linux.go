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

// Watch bounds what a sandbox's processes hold until the context ends, and kills
// them if it is more than they may, which is then the error. The process is the
// sandbox's first. Memory is counted at intervals, for which all processes of the
// machine are looked at.
func Watch(ctx context.Context, pid int, memory int64, every time.Duration) error {
	kernel := newGroup(pid, memory)
	defer kernel.remove()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ended := false; ; {
		if kernel.exceeded() || !ended && exceeds(pid, memory) {
			_ = unix.Kill(pid, unix.SIGKILL) // all of its namespace goes with it
			return &MemoryError{Limit: memory}
		}
		if ended {
			return nil
		}
		select {
		case <-ctx.Done():
			ended = true // perhaps because of the kernel's bound
		case <-tick.C:
		}
	}
}

// exceeds reports whether processes hold more than they may, with their files in memory.
func exceeds(pid int, memory int64) bool {
	members, files := descendants(pid), filesInMemory(pid)
	// Processes that were forked share pages, which the quick count has several times.
	return files+sum(members, resident) > memory && files+sum(members, proportional) > memory
}

// filesInMemory is what /tmp and /dev/shm of a sandbox hold. Until it is entered they
// are this machine's, of another size.
func filesInMemory(pid int) (total int64) {
	for _, folder := range []string{"tmp", "dev/shm"} {
		var fs unix.Statfs_t
		if unix.Statfs(filepath.Join("/proc", strconv.Itoa(pid), "root", folder), &fs) != nil {
			continue
		}
		if size := fs.Bsize; fs.Type == unix.TMPFS_MAGIC && int64(fs.Blocks)*size == temporary {
			total += int64(fs.Blocks-fs.Bfree) * size
		}
	}
	return total
}

// MachineMemory is how much memory this machine has, 0 if that is not known.
func MachineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
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

// proportional is what it has in memory, each page divided among those that share it,
// without the files in memory that it has mapped.
func proportional(pid int) (total int64) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "Pss:":
			total += kib << 10
		case "Pss_Shmem:":
			total -= kib << 10
		}
	}
	return total
}
