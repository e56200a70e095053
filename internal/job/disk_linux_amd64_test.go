package job

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"memorymark/internal/testmachine"
)

// This file stands between a process and its disk, as strace does: it sees every
// system call by which files of a folder change, in their order, and can let one
// of them fail. The process is not changed for it, nor the engine in it.

// operation is one of those calls.
type operation struct {
	call   string // write, sync, truncate, open, rename, remove; or say, for a line that the process printed
	path   string
	to     string // of a rename
	at     int64  // of a write, or the length of a truncate
	data   []byte // of a write, or what was said
	synced bool   // a write that is durable by itself
}

// changes reports whether an operation touches the disk.
func (o operation) changes() bool { return o.call != "say" }

// watchDisk runs a program until it ends and returns what it did to a folder. The
// function may let an operation fail, with an error that is not 0.
func watchDisk(t *testing.T, c *exec.Cmd, dir string, fault func(operation) syscall.Errno) []operation {
	t.Helper()
	w := &diskWatcher{dir: dir, fault: fault, threads: make(map[int]*thread)}
	done := make(chan error)
	go func() { // all of ptrace must come from one thread
		runtime.LockOSThread()
		done <- w.run(c)
	}()
	if err := <-done; err != nil {
		t.Skipf("NOT TESTED: this machine does not let a test trace a program: %v", err)
	}
	return w.log
}

type diskWatcher struct {
	dir     string
	fault   func(operation) syscall.Errno
	threads map[int]*thread
	log     []operation
}

// thread is the system call that a thread is in.
type thread struct {
	inside bool // a system call
	op     *operation
	fails  syscall.Errno
}

const (
	traceSysGood  = 0x1
	traceClone    = 0x8
	traceExitKill = 0x100000
	ownChildren   = 0x20000000 | 0x40000000 // __WNOTHREAD, __WALL
)

func (w *diskWatcher) run(c *exec.Cmd) error {
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		return err
	}
	pid := c.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, ownChildren, nil); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(pid, traceSysGood|traceClone|traceExitKill); err != nil {
		return err
	}
	w.threads[pid] = &thread{}
	if err := syscall.PtraceSyscall(pid, 0); err != nil {
		return err
	}
	for len(w.threads) > 0 {
		tid, err := syscall.Wait4(-1, &status, ownChildren, nil)
		if err != nil {
			return nil //nolint:nilerr // there is none left
		}
		if status.Exited() || status.Signaled() {
			delete(w.threads, tid)
			continue
		}
		signal := 0
		th, known := w.threads[tid]
		switch s := status.StopSignal(); {
		case !known:
			w.threads[tid] = &thread{} // a new one begins stopped
		case s == syscall.SIGTRAP|0x80:
			w.handleStop(pid, tid, th)
		case s != syscall.SIGTRAP:
			signal = int(s)
		}
		_ = syscall.PtraceSyscall(tid, signal) // one that was killed is gone
	}
	return nil
}

// handleStop is called before and after every system call of a thread.
func (w *diskWatcher) handleStop(pid, tid int, th *thread) {
	var r syscall.PtraceRegs
	if syscall.PtraceGetRegs(tid, &r) != nil {
		return
	}
	if th.inside = !th.inside; th.inside {
		if th.op = w.operation(pid, &r); th.op == nil {
			return
		}
		if th.op.changes() && w.fault != nil {
			th.fails = w.fault(*th.op)
		}
		switch {
		case th.fails != 0:
			r.Orig_rax = ^uint64(0) // which is no call, so that nothing is done
			_ = syscall.PtraceSetRegs(tid, &r)
		case th.op.call != "open": // of which it is not known yet whether it will work
			w.log = append(w.log, *th.op)
		}
		return
	}
	if th.fails != 0 {
		r.Rax = uint64(-int64(th.fails))
		_ = syscall.PtraceSetRegs(tid, &r)
	}
	if th.op != nil && th.op.call == "open" && int64(r.Rax) >= 0 {
		w.log = append(w.log, *th.op)
	}
	th.op, th.fails = nil, 0
}

// operation reads the arguments of a call, nil if it is of no interest.
func (w *diskWatcher) operation(pid int, r *syscall.PtraceRegs) *operation {
	var o *operation
	switch r.Orig_rax {
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64:
		if r.Orig_rax == syscall.SYS_WRITE && r.Rdi == 1 {
			return &operation{call: "say", data: read(pid, r.Rsi, int(r.Rdx))}
		}
		path := descriptor(pid, r.Rdi)
		if !w.ours(path) {
			return nil
		}
		at, synced := position(pid, r.Rdi)
		if r.Orig_rax == syscall.SYS_PWRITE64 {
			at = int64(r.R10)
		}
		o = &operation{call: "write", path: path, at: at, synced: synced, data: read(pid, r.Rsi, int(r.Rdx))}
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		o = &operation{call: "sync", path: descriptor(pid, r.Rdi)}
	case syscall.SYS_FTRUNCATE:
		o = &operation{call: "truncate", path: descriptor(pid, r.Rdi), at: int64(r.Rsi)}
	case syscall.SYS_OPENAT:
		if r.Rdx&(syscall.O_CREAT|syscall.O_TRUNC) == 0 {
			return nil
		}
		o = &operation{call: "open", path: text(pid, r.Rsi), at: -1}
		if r.Rdx&syscall.O_TRUNC != 0 {
			o.at = 0
		}
	case syscall.SYS_RENAME:
		o = &operation{call: "rename", path: text(pid, r.Rdi), to: text(pid, r.Rsi)}
	case syscall.SYS_RENAMEAT, 316: // renameat2
		o = &operation{call: "rename", path: text(pid, r.Rsi), to: text(pid, r.R10)}
	case syscall.SYS_UNLINK:
		o = &operation{call: "remove", path: text(pid, r.Rdi)}
	case syscall.SYS_UNLINKAT:
		o = &operation{call: "remove", path: text(pid, r.Rsi)}
		if !filepath.IsAbs(o.path) { // by RemoveAll, in a folder that it has open
			o.path = filepath.Join(descriptor(pid, r.Rdi), o.path)
		}
	}
	if o == nil || !w.ours(o.path) {
		return nil
	}
	return o
}

func (w *diskWatcher) ours(path string) bool { return strings.HasPrefix(path, w.dir+"/") }

func descriptor(pid int, fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
	return path
}

// position is where a file is written next, and whether that is durable at once.
func position(pid int, fd uint64) (at int64, synced bool) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	var flags uint64
	_, _ = fmt.Sscanf(string(data), "pos: %d\nflags: %o", &at, &flags)
	return at, flags&syscall.O_DSYNC != 0
}

func read(pid int, address uint64, n int) []byte {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil
	}
	defer f.Close()
	data := make([]byte, n)
	got, _ := f.ReadAt(data, int64(address))
	return data[:got]
}

func text(pid int, address uint64) string {
	data, _, _ := bytes.Cut(read(pid, address, 4096), []byte{0})
	return string(data)
}

// disk is what files are after some operations: all that was written, and what of
// it would be there after the power failed. As on a file system with a journal,
// names are kept by the next sync of anything, and bytes by that of their file.
type disk struct {
	names, kept map[string]*inode
	said        []string
}

type inode struct{ data, synced []byte }

func newDisk() *disk { return &disk{names: make(map[string]*inode), kept: make(map[string]*inode)} }

func (d *disk) file(path string) *inode {
	if d.names[path] == nil {
		d.names[path] = &inode{}
	}
	return d.names[path]
}

func (d *disk) do(o operation) {
	switch o.call {
	case "say":
		lines := bufio.NewScanner(bytes.NewReader(o.data))
		for lines.Scan() {
			d.said = append(d.said, lines.Text())
		}
	case "open":
		if f := d.file(o.path); o.at == 0 {
			f.data = nil
		}
	case "write":
		f := d.file(o.path)
		f.data = append(slices.Clip(f.data[:min(int(o.at), len(f.data))]), f.data[min(int(o.at), len(f.data)):]...) // a copy
		if need := int(o.at) + len(o.data); len(f.data) < need {
			f.data = append(f.data, make([]byte, need-len(f.data))...)
		}
		copy(f.data[o.at:], o.data)
		if o.synced {
			d.sync(o.path)
		}
	case "truncate":
		f := d.file(o.path)
		f.data = append(bytes.Clone(f.data[:min(int(o.at), len(f.data))]), make([]byte, max(0, int(o.at)-len(f.data)))...)
	case "sync":
		d.sync(o.path)
	case "rename", "remove":
		d.move(o.path, o.to)
	}
}

func (d *disk) sync(path string) {
	if f := d.names[path]; f != nil {
		f.synced = bytes.Clone(f.data)
	}
	d.kept = maps.Clone(d.names)
}

// move renames a file, or a folder with all in it; to nowhere it removes.
func (d *disk) move(path, to string) {
	for name, f := range maps.Clone(d.names) {
		if name == path || strings.HasPrefix(name, path+"/") {
			delete(d.names, name)
			if to != "" {
				d.names[to+strings.TrimPrefix(name, path)] = f
			}
		}
	}
}

// write makes a folder of what is there, from is what it was called.
func (d *disk) write(t *testing.T, from, dir string, powerFailed bool) {
	t.Helper()
	names := d.names
	if powerFailed {
		names = d.kept
	}
	for name, f := range names {
		data := f.data
		if powerFailed {
			data = f.synced
		}
		path := filepath.Join(dir, strings.TrimPrefix(name, from))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		testmachine.WriteFile(t, path, data)
	}
}
