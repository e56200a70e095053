// Package sandbox runs a program that is not trusted. The program has its own
// user, file system and processes, no network, and limits. The sandbox is made of
// Linux's namespaces and needs no privileges.
//
// The program is started through this one: Command runs ourselves once more, and
// Enter, which the main function calls first, furnishes the namespaces from
// within before it becomes the program.
package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Box says what a program finds in its sandbox.
type Box struct {
	// Root is an empty folder, on which the program's file system is put. Who
	// else runs here does not see that.
	Root string
	// Folders can be read, at their own paths, in addition to the system's programs and
	// libraries. Nothing else of this machine's files is there.
	Folders []string
	// Work is the folder that the program starts in: one of Folders, or below.
	Work string
	// Env is its whole environment, in addition to a PATH and a HOME.
	Env []string
	// Memory is how many bytes all of its processes may hold.
	Memory int64
}

// What every sandbox has.
const (
	// temporary is how many bytes /tmp and /dev/shm may hold, each.
	temporary = 512 << 20
	// processes is how many there may be, with threads: OpenMP has one a core.
	processes = 4096
	openFiles = 1024
	fileSize  = temporary
)

// unprivileged is the program's user and group. It is no user of this machine's where
// we are root, and ourselves without our files where we are not.
const unprivileged = 65534

// UnsupportedError says that this system has no sandboxes.
type UnsupportedError struct{ Err error }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("this system has no sandbox for other people's code: %v", e.Err)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// Fix says what to do about it.
func (e *UnsupportedError) Fix() string {
	return "leave out --allow-code, or let this user make namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, " +
		"kernel.unprivileged_userns_clone=1 on older Debian; in a container, its runtime must allow them and an unmasked /proc"
}

// MemoryError says that a program held more than it may.
type MemoryError struct{ Limit int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("the program was stopped because it held more than %.3g GiB of the machine's own memory, its limit", float64(e.Limit)/(1<<30))
}

// outermost are folders without those that are within others.
func outermost(folders []string) []string {
	var out []string
	for _, folder := range slices.Sorted(slices.Values(folders)) {
		folder = filepath.Clean(folder)
		within := slices.ContainsFunc(out, func(other string) bool { return folder == other || strings.HasPrefix(folder, other+"/") })
		if !within && filepath.IsAbs(folder) && folder != "/" {
			out = append(out, folder)
		}
	}
	return out
}
