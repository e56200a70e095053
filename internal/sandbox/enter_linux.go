package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Enter becomes the program of a sandbox, if that is what we were run for, and
// returns otherwise. The main function calls it before all else.
func Enter() {
	if len(os.Args) != 2 || os.Args[0] != stageName {
		return
	}
	err := enter([]byte(os.Args[1]))
	fmt.Fprintf(os.Stderr, "the sandbox cannot be entered: %v\n", err)
	os.Exit(125)
}

// enter returns only if something failed.
func enter(data []byte) error {
	runtime.LockOSThread() // rights belong to a thread, and the one that becomes the program must not have any
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(*entry) error
	}{
		{"furnish it", furnish},
		{"leave everything else", leave},
		{"set its limits", limit},
		{"give up rights", giveUp},
		{"filter its system calls", confine},
	} {
		if err := step.do(&e); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	err := unix.Exec(e.Program[0], e.Program, os.Environ())
	return fmt.Errorf("run %s: %w; other users may have no access to its folder; run the worker as a dedicated user", e.Program[0], err)
}

// system is what programs need of a system: its libraries, and how these are
// found. /etc as a whole may hold a worker's token.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt/rocm", "/nix/store", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/alternatives", "/etc/localtime",
}

// devices are harmless.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// furnish builds the file system below the root.
func furnish(e *entry) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to itself: %w", err)
	}
	if err := e.mountNew("", "tmpfs", "mode=755,size=1m"); err != nil {
		return err
	}
	small := fmt.Sprintf("mode=1777,size=%d", temporary)
	for _, m := range []struct{ at, kind, options string }{{"/proc", "proc", ""}, {"/tmp", "tmpfs", small}, {"/dev/shm", "tmpfs", small}} {
		if err := e.mountNew(m.at, m.kind, m.options); err != nil {
			return err
		}
	}
	for _, path := range system {
		if err := e.show(path, true); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	for _, path := range outermost(e.Folders) {
		if err := e.show(path, true); err != nil {
			return err
		}
	}
	for _, path := range devices {
		if err := e.show(path, false); err != nil {
			return err
		}
	}
	names := fmt.Sprintf("nobody:x:%d:%d:nobody:/tmp:/bin/sh\n", unprivileged, unprivileged)
	return os.WriteFile(filepath.Join(e.Root, "etc/passwd"), []byte(names), 0o644) //nolint:gosec // as everywhere
}

// mountNew mounts a fresh file system at a path of the sandbox.
func (e *entry) mountNew(at, kind, options string) error {
	target := filepath.Join(e.Root, at)
	if err := os.MkdirAll(target, 0o755); err != nil { //nolint:gosec // folders are seen in there only
		return err
	}
	if err := unix.Mount(kind, target, kind, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount a new %s at %s/: %w", kind, at, err)
	}
	return nil
}

// show has a file or a folder appear at its own path, unless it is there. Links
// are made again.
func (e *entry) show(path string, readOnly bool) error {
	target := filepath.Join(e.Root, path)
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	found, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // see above
		return err
	}
	switch {
	case found.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(to, target)
	case found.IsDir():
		err = os.Mkdir(target, 0o755) //nolint:gosec // see above
	default:
		err = os.WriteFile(target, nil, 0o600)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(path, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", path, err)
	}
	if !readOnly {
		return nil
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(-1, target, unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("show %s, to be read only (Linux 5.12 can): %w", path, err)
	}
	return nil
}

// leave makes the new file system the only one.
func leave(e *entry) error {
	if err := unix.Chdir(e.Root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old one is now on top of the new one (pivot_root(2), NOTES)
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return err
	}
	return unix.Chdir(e.Work)
}

// limit sets what the kernel limits. Memory is not among it: what a model on an
// emulated card reserves of the host, and never writes, is none; Watch counts.
func limit(*entry) error {
	for resource, most := range map[int]uint64{
		unix.RLIMIT_NPROC: processes, unix.RLIMIT_NOFILE: openFiles, unix.RLIMIT_FSIZE: fileSize, unix.RLIMIT_CORE: 0, unix.RLIMIT_MEMLOCK: 64 << 10,
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return err
		}
		most = min(most, now.Max)
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	// No namespaces within, where the program would have rights again.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return err
	}
	return os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // when the machine's memory ends, this goes first
}

// giveUp drops the rights to furnish, for good: a user that is not root has none
// after exec, and no file can give it any.
func giveUp(*entry) error {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(unprivileged), syscall.Setuid(unprivileged)); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
