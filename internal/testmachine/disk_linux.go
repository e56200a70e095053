package testmachine

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// folderVariable tells the test's program that it is the process that may mount,
// and where.
const folderVariable = "MEMORYMARK_TEST_DISK"

// noDisk is what the process says that may not mount after all.
const noDisk = "cannot mount"

// Disk is a file system in memory, which can be too small.
type Disk struct {
	Folder string
}

// OwnDisk returns a disk of a size such as "80m". A process needs rights to mount one, so
// the test is run in a process of its own that has them; in the first one there is
// no disk, ok is false, and the test has to return: it was run by then.
func OwnDisk(t *testing.T, size string) (d *Disk, ok bool) {
	t.Helper()
	folder := os.Getenv(folderVariable)
	if folder == "" {
		runAgain(t)
		return nil, false
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skip(noDisk, err)
	}
	return &Disk{folder}, true
}

// Resize gives the disk another size.
func (d *Disk) Resize(size string) error {
	return syscall.Mount("tmpfs", d.Folder, "tmpfs", syscall.MS_REMOUNT, "size="+size)
}

// runAgain runs a test in a process that may mount.
func runAgain(t *testing.T) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), folderVariable+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || strings.Contains(string(out), noDisk) {
		t.Skipf("NOT TESTED: this machine does not give a test a disk of its own: %v %s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
