package server

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"memorymark/internal/job"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/testmachine"
)

// answerTime is how long the queue waits for an engine that is away for a moment.
const answerTime = 15 * time.Second

// TestDiskFull asks a server on a disk that is too small, and again after it
// has grown: it refuses without waiting, says why, and continues by itself.
func TestDiskFull(t *testing.T) {
	disk, ok := testmachine.OwnDisk(t, "100m")
	if !ok {
		return
	}
	dir := disk.Folder
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
		if err := disk.Resize(size); err != nil {
			t.Fatal(err)
		}
	}
	resize("4m")
	begin := time.Now()
	refused := c.post("/v1/analyses", `{"workload":`+small+`}`)
	if took := time.Since(begin); refused.StatusCode != http.StatusInsufficientStorage || !strings.Contains(refused.text, "disk is full") || took > answerTime {
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

func waitReady(t *testing.T, c *client) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got := c.get("/ready")
		if got.StatusCode == http.StatusOK {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("it does not become ready: %s", got.text)
		}
	}
}

// noise does not compress.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}
