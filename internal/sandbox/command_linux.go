package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageName is what we are called when we are run to enter a sandbox.
const stageName = "memorymark-sandbox"

// entry is what a sandbox is entered with.
type entry struct {
	Box
	Program []string
}

// Command returns a program that is not started yet, to be run in the sandbox.
// Whoever kills it kills all that it started.
func (b *Box) Command(path string, args ...string) (*exec.Cmd, error) {
	data, err := json.Marshal(entry{*b, append([]string{path}, args...)})
	if err != nil {
		return nil, err
	}
	// The path of a program may be closed to the sandbox's user; this link is not.
	c := exec.Command("/proc/self/exe") //nolint:noctx // the caller ends it
	c.Args = []string{stageName, string(data)}
	c.Env = slices.Concat([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"}, b.Env)
	c.Dir = "/"
	c.SysProcAttr = attributes(os.Getuid(), os.Getgid())
	return c, nil
}

// attributes gives a process namespaces of its own. Its user in there has the
// rights to furnish them, which it gives up before it becomes the program.
func attributes(uid, gid int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Setpgid:    true,
	}
	if uid == 0 { // who stays root until all is furnished, because folders of root's may be closed to others
		a.GidMappingsEnableSetgroups = true
		a.UidMappings = []syscall.SysProcIDMap{{Size: 1}, {ContainerID: unprivileged, HostID: unprivileged, Size: 1}}
		a.GidMappings = a.UidMappings
		return a
	}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE} // for mounts, and for the limit of namespaces
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: unprivileged, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: unprivileged, HostID: gid, Size: 1}}
	return a
}
