package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"memorymark/internal/testmachine"
)

func TestMain(m *testing.M) {
	Enter()
	os.Exit(m.Run())
}

// needNamespaces skips where users cannot make namespaces, as in most
// containers; whatever else is wrong with a sandbox is for the test to find.
func needNamespaces(t *testing.T) {
	t.Helper()
	c := exec.Command("/bin/true")
	c.SysProcAttr = attributes(os.Getuid(), os.Getgid())
	if err := c.Run(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("NOT TESTED: this system has no namespaces for users: %v", err)
	}
}

// boxed runs Python code in a sandbox, and returns what it printed.
func boxed(t *testing.T, b Box, code string) (string, error) {
	t.Helper()
	c := command(t, b, code)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func command(t *testing.T, b Box, code string) *exec.Cmd {
	t.Helper()
	needNamespaces(t)
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("NOT TESTED: it needs /usr/bin/python3")
	}
	folder := openFolder(t)
	b.Root, b.Work = filepath.Join(folder, "root"), filepath.Join(folder, "work")
	b.Folders = append(b.Folders, b.Work)
	for _, path := range []string{b.Root, b.Work} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c, err := b.Command(python, "-c", code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openFolder is a folder that every user of this machine may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "memorymark-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestSandbox has a program try what it must not be able to.
func TestSandbox(t *testing.T) {
	secret := filepath.Join(openFolder(t), "token")
	if err := os.WriteFile(secret, []byte("mm_secret"), 0o644); err != nil { // everyone may read it
		t.Fatal(err)
	}
	t.Setenv("MEMORYMARK_TOKEN", "mm_secret")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	try := "try:\n    print(%s)\nexcept Exception as e:\n    print(type(e).__name__)"
	for name, c := range map[string]struct{ code, want string }{
		"it runs":               {"print(40 + 2)", "42"},
		"its user":              {"import os; print(os.getuid(), os.getgid(), os.getpid())", "65534 65534 1"},
		"a server nearby":       {fmt.Sprintf("import socket\n"+try, fmt.Sprintf("socket.create_connection(%q.split(':'), 2)", l.Addr())), "OSError"},
		"the internet":          {fmt.Sprintf("import socket\n"+try, "socket.create_connection(('192.0.2.1', 80), 2)"), "OSError"},
		"a name":                {fmt.Sprintf("import socket\n"+try, "socket.gethostbyname('example.com')"), "gaierror"},
		"network devices":       {"import socket; print(socket.if_nameindex())", "[(1, 'lo')]"},
		"a readable file":       {fmt.Sprintf(try, fmt.Sprintf("open(%q).read()", secret)), "FileNotFoundError"},
		"the user's home":       {fmt.Sprintf("import os\n"+try, "os.listdir('/root') + os.listdir('/home')"), "FileNotFoundError"},
		"the system's secrets":  {"import os; print(sorted(set(os.listdir('/etc')) - {'ld.so.conf', 'ld.so.conf.d', 'localtime', 'alternatives', 'ld.so.cache'}))", "['passwd']"},
		"our environment":       {"import os; print([v for v in os.environ.values() if 'secret' in v])", "[]"},
		"other processes":       {"import os; print([p for p in os.listdir('/proc') if p.isdigit()])", "['1']"},
		"to write":              {fmt.Sprintf(try, "open('/usr/x', 'w')"), "OSError"},
		"to write its code":     {fmt.Sprintf(try, "open('x', 'w')"), "OSError"},
		"to write at the root":  {fmt.Sprintf(try, "open('/x', 'w')"), "OSError"},
		"a file of its own":     {fmt.Sprintf(try, "open('/tmp/x', 'w').write('abc')"), "3"},
		"a file without end":    {"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + fmt.Sprintf(try, "open('/tmp/x', 'wb').truncate(1 << 40)"), "OSError"},
		"to mount":              {"import ctypes; print(ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None))", "-1"},
		"rights again":          {"import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))", "-1"},
		"no new privileges":     {"print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('NoNewPrivs', 'CapEff', 'CapPrm'))])", "['0000000000000000', '0000000000000000', '1']"},
		"memory of no process":  {"import os\n" + fmt.Sprintf(try, "os.memfd_create('x')"), "PermissionError"},
		"more memory of none":   {"import mmap\n" + fmt.Sprintf(try, "mmap.mmap(-1, 4096)"), "PermissionError"},
		"shared memory":         {"import ctypes; print(ctypes.CDLL(None).shmget(0, 4096, 0o1600))", "-1"},
		"memory of its own":     {"import mmap; print(len(mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE)))", "4096"},
		"a file to share":       {"import multiprocessing as m; a = m.Array('d', 3); a[1] = 2; print(list(a))", "[0.0, 2.0, 0.0]"},
		"threads and processes": {"import subprocess, threading as t; x = t.Thread(target=print, args=(1,)); x.start(); x.join(); print(subprocess.check_output(['/bin/echo', '2']))", "1\nb'2\\n'"},
		"namespaces of a child": {"import ctypes; print(ctypes.CDLL(None).syscall(56 if __import__('os').uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0))", "-1"},
		"the virtual machine":   {"import socket\n" + fmt.Sprintf(try, "socket.socket(40, socket.SOCK_STREAM)"), "OSError"},
		"the kernel's ciphers":  {"import socket\n" + fmt.Sprintf(try, "socket.socket(38, socket.SOCK_SEQPACKET)"), "OSError"},
		"a parent's memory":     {"import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))", "-1"},
		"to be root":            {"import os\ntry:\n    os.setuid(0)\nexcept OSError:\n    print('no')", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := boxed(t, Box{}, c.code); err != nil || got != c.want {
				t.Errorf("it printed %q, want %q: %v", got, c.want, err)
			}
		})
	}
}

// patience is after how long a test that waits has failed.
const patience = 5 * time.Minute

// TestMemoryLimit ends a program that takes more than it may, and leaves alone
// one that reserves memory without writing to it.
func TestMemoryLimit(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		dies bool
	}{
		"takes":             {"x = bytearray(600 << 20)\nwhile True: pass", true},
		"children take":     {"import os\nfor _ in range(4):\n    if os.fork() == 0: break\nx = bytearray(200 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nwhile True: pass", true},
		"files in memory":   {"import time\nfor path in '/tmp/x', '/dev/shm/x':\n    with open(path, 'wb') as f:\n        for _ in range(300): f.write(bytes(1 << 20))\ntime.sleep(1000)", true},
		"a mapped file":     {"import mmap, time\nf = open('/dev/shm/x', 'w+b'); f.truncate(300 << 20); x = mmap.mmap(f.fileno(), 0)\nfor i in range(0, len(x), 4096): x[i] = 1\ntime.sleep(1)", false},
		"reserves":          {"import mmap, time; x = mmap.mmap(-1, 1 << 36, flags=mmap.MAP_PRIVATE | 0x4000); time.sleep(1)", false},
		"shares with forks": {"import os, time\nx = bytearray(200 << 20)\nfor _ in range(4):\n    if os.fork() == 0: time.sleep(1); os._exit(0)\ntime.sleep(1)", false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, Box{}, c.code)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			watched := make(chan error, 1)
			go func() { watched <- Watch(ctx, cmd.Process.Pid, 500<<20, 100*time.Millisecond) }()
			err := cmd.Wait()
			if ctx.Err() != nil {
				t.Fatal("it was not ended")
			}
			stop()
			var memory *MemoryError
			if got := errors.As(<-watched, &memory); got != c.dies || (err != nil) != c.dies {
				t.Errorf("it was stopped: %v, want %v; it ended with %v", got, c.dies, err)
			}
		})
	}
}

// isGone reports whether a process has ended.
func isGone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.Contains(string(data), "Z (zombie)")
}

// TestNothingIsLeft kills a sandbox whose program went into the background.
func TestNothingIsLeft(t *testing.T) {
	c := command(t, Box{}, "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(1000)\ntime.sleep(1000)")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for len(descendants(c.Process.Pid)) < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	all := descendants(c.Process.Pid)
	c.Process.Kill()
	c.Wait()
	for begin, left := time.Now(), all; ; time.Sleep(10 * time.Millisecond) {
		if left = slices.DeleteFunc(left, isGone); len(left) == 0 {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("%v are still there", left)
		}
	}
}

// A group of the kernel's is made where this process may; what it says is read.
func TestGroup(t *testing.T) {
	if got := delegated("1:name=systemd:/x\n0::/\n"); !slices.Equal(got, []string{cgroups}) {
		t.Errorf("of the root group: %q", got)
	}
	if got := delegated("0::/no.such.slice/worker\n"); len(got) > 0 {
		t.Errorf("of a group that is not delegated: %q", got)
	}
	g := &group{t.TempDir()}
	for text, want := range map[string]bool{"low 0\noom 3\noom_kill 0\n": false, "low 0\noom 3\noom_kill 1\n": true} {
		testmachine.WriteFile(t, filepath.Join(g.folder, "memory.events"), text)
		if g.exceeded() != want {
			t.Errorf("%q: exceeded is %v", text, !want)
		}
	}
}
