package server

import (
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"memorymark/internal/job"
	"memorymark/internal/snapshotstore"
)

// fullVariable tells the test's program that it is the process with a disk of
// its own.
const fullVariable = "MEMORYMARK_TEST_FULL"

// TestDiskFull asks a server on a disk that is too small, and again after it
// has grown: it refuses at once, says why, and goes on by itself.
func TestDiskFull(t *testing.T) {
	dir := os.Getenv(fullVariable)
	if dir == "" {
		runWithOwnDisk(t)
		return
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=100m"); err != nil {
		t.Skip(noDisk, err)
	}
	q, err := job.Open(t.Context(), job.Config{Dir: dir + "/jobs"})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	store, err := snapshotstore.Open(dir+"/snapshots", snapshotstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, func(o *Options) { o.Jobs, o.Snapshots = q, store })
	waitReady(t, c)
	resize := func(size string) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
	resize("4m")
	begin := time.Now()
	refused := c.post("/v1/analyses", `{"workload":`+small+`}`)
	if took := time.Since(begin); refused.StatusCode != http.StatusInsufficientStorage || !strings.Contains(refused.text, "disk is full") || took > 2*time.Second {
		t.Errorf("after %v: %s: %s", took, refused.Status, refused.text)
	}
	if got := c.get("/ready"); got.StatusCode != http.StatusServiceUnavailable || !strings.Contains(got.text, "disk is full") {
		t.Errorf("ready: %s: %s", got.Status, got.text)
	}
	if got := c.do(http.MethodPost, "/v1/snapshots", string(noise(6<<20))); got.StatusCode != http.StatusInsufficientStorage || strings.Contains(got.text, dir) {
		t.Errorf("upload: %s: %s", got.Status, got.text)
	}
	for _, path := range []string{"/health", "/v1/gpus", "/v1/analyses"} {
		if got := c.get(path); got.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %s", path, got.Status, got.text)
		}
	}
	resize("100m")
	waitReady(t, c)
	c.begin(`{"workload":` + small + `}`)
}

const noDisk = "cannot mount"

func waitReady(t *testing.T, c *client) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got := c.get("/ready")
		if got.StatusCode == http.StatusOK {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("it does not become ready: %s", got.text)
		}
	}
}

// runWithOwnDisk runs a test in a process that may mount.
func runWithOwnDisk(t *testing.T) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), fullVariable+"="+t.TempDir())
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

// noise does not compress.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}
