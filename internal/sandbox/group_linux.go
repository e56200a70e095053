package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// group is a cgroup (version 2) of a sandbox: the kernel itself bounds its memory, with
// what no process has mapped, such as what waits in sockets. Its files are described in
// Documentation/admin-guide/cgroup-v2.rst.
type group struct{ folder string }

// cgroups is where version 2 is mounted, unless version 1 is mounted too.
const cgroups = "/sys/fs/cgroup"

// newGroup makes a group for a process, or returns nil where this process may not make
// one that bounds memory: then Watch alone does that.
func newGroup(pid int, memory int64) *group {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for _, parent := range delegated(string(data)) {
		g := &group{filepath.Join(parent, "memorymark-sandbox-"+strconv.Itoa(pid))}
		if g.make(parent, pid, memory) == nil {
			return g
		}
		g.remove()
	}
	return nil
}

// delegated are the folders in which this process may make groups: its own group if
// that is the root, whose processes need not leave it first, or the one above if systemd
// has delegated that (DelegateSubgroup= in systemd.resource-control(5)).
func delegated(self string) (out []string) {
	for line := range strings.Lines(self) {
		own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		switch above := filepath.Join(cgroups, filepath.Dir(own)); {
		case !ok:
		case own == "/":
			out = append(out, cgroups)
		case isDelegated(above):
			out = append(out, above)
		}
	}
	return out
}

func isDelegated(folder string) bool {
	value := make([]byte, 1)
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(folder, name, value); err == nil && n == 1 && value[0] == '1' {
			return true
		}
	}
	return false
}

// make makes the folder of the group, bounds it, and moves the process into it.
func (g *group) make(parent string, pid int, memory int64) error {
	_ = write(filepath.Join(parent, "cgroup.subtree_control"), "+memory") // it may be on, and else what follows fails
	return errors.Join(
		os.Mkdir(g.folder, 0o755), //nolint:gosec // as the kernel has them
		g.set("memory.max", strconv.FormatInt(memory, 10)),
		g.set("memory.swap.max", "0"),
		g.set("memory.oom.group", "1"),
		g.set("cgroup.procs", strconv.Itoa(pid)),
	)
}

func (g *group) set(name, value string) error { return write(filepath.Join(g.folder, name), value) }

// write writes into a file that the kernel has made.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// exceeded reports whether the kernel has ended processes because of the bound.
func (g *group) exceeded() bool {
	if g == nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join(g.folder, "memory.events"))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(data) {
		if name, count, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); string(name) == "oom_kill" {
			return string(count) != "0"
		}
	}
	return false
}

func (g *group) remove() {
	if g != nil {
		_ = os.Remove(g.folder) // which the kernel refuses while it has processes
	}
}
