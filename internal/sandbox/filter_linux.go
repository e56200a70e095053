package sandbox

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusedCalls are system calls that a training step does not need: memory that
// belongs to no process, so that Watch cannot count it; other processes; and parts of
// the kernel where most of its vulnerabilities were found.
var refusedCalls = []uintptr{
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_FANOTIFY_INIT, unix.SYS_VMSPLICE, unix.SYS_PERSONALITY,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_SYSLOG,
}

// socketFamilies are those that there are sockets of. AF_VSOCK would reach the host of
// a virtual machine, since no namespace separates it.
var socketFamilies = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	// unowned is memory that stays when no process has it mapped.
	unowned = unix.MAP_SHARED | unix.MAP_ANONYMOUS
	// x32 marks calls of x86-64's other numbering (arch/x86/include/uapi/asm/unistd.h).
	x32 = 0x40000000
)

// auditArch is how the kernel names the machine that a call is made for.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in struct seccomp_data (include/uapi/linux/seccomp.h): the number, the
// machine, and the low half of an argument on a little-endian machine.
const (
	offsetNumber = 0
	offsetArch   = 4
)

func offsetArgument(i uint32) uint32 { return 16 + 8*i }

// filter is a program for the kernel's filter of system calls. Each rule jumps over
// its answer where it does not apply.
type filter []unix.SockFilter

func (f *filter) load(offset uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

// jump skips yes instructions if the comparison is true, and no instructions if not.
func (f *filter) jump(compare uint16, value uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | compare | unix.BPF_K, Jt: yes, Jf: no, K: value})
}

func (f *filter) answer(action uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

func refuse(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// newFilter returns the filter for a machine.
func newFilter(arch uint32) filter {
	var f filter
	f.load(offsetArch)
	f.jump(unix.BPF_JEQ, arch, 1, 0)
	f.answer(unix.SECCOMP_RET_KILL_PROCESS)
	f.load(offsetNumber)
	f.jump(unix.BPF_JGE, x32, 0, 1)
	f.answer(refuse(unix.ENOSYS))
	for _, call := range refusedCalls {
		f.jump(unix.BPF_JEQ, uint32(call), 0, 1)
		f.answer(refuse(unix.EPERM))
	}
	// The flags of clone3 are in memory, where no filter sees them; C libraries then use clone.
	f.jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1)
	f.answer(refuse(unix.ENOSYS))

	f.jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4)
	f.load(offsetArgument(0))
	f.jump(unix.BPF_JSET, newNamespaces, 0, 1)
	f.answer(refuse(unix.EPERM))
	f.answer(unix.SECCOMP_RET_ALLOW)

	f.jump(unix.BPF_JEQ, unix.SYS_MMAP, 0, 6)
	f.load(offsetArgument(3))
	f.jump(unix.BPF_JSET, unix.MAP_HUGETLB, 2, 0) // which no process has resident
	f = append(f, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: unowned})
	f.jump(unix.BPF_JEQ, unowned, 0, 1)
	f.answer(refuse(unix.EPERM))
	f.answer(unix.SECCOMP_RET_ALLOW)

	f.jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, uint8(len(socketFamilies)+2))
	f.load(offsetArgument(0))
	for i, family := range socketFamilies {
		f.jump(unix.BPF_JEQ, family, uint8(len(socketFamilies)-i), 0)
	}
	f.answer(refuse(unix.EAFNOSUPPORT))
	f.answer(unix.SECCOMP_RET_ALLOW)
	return f
}

// confine puts the filter on this thread, for good; what it executes keeps it.
func confine(*entry) error {
	arch, known := auditArch[runtime.GOARCH]
	if !known {
		return errors.New("system calls are filtered on x86-64 and arm64 only")
	}
	f := newFilter(arch)
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
