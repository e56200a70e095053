//go:build !js

package measure

import "syscall"

// ownGroup makes a process the first of its own group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// endGroup tells the processes of a group to end, or ends them.
func endGroup(pid int, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-pid, signal) // there may be none left
}
