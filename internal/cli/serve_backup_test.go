package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memorymark/internal/job"
	"memorymark/internal/testmachine"
	"memorymark/internal/token"
)

// runs runs the command line and returns its exit code and what it said.
func runs(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	code = Run(t.Context(), args, strings.NewReader(""), &out, &out)
	return code, out.String()
}

// TestBackUpAndRestore takes a server's folder to another place, where the
// same jobs and tokens are.
func TestBackUpAndRestore(t *testing.T) {
	data, file, other := t.TempDir(), filepath.Join(t.TempDir(), "monday.tar.zst"), filepath.Join(t.TempDir(), "elsewhere")
	id := oneJob(t, data)
	secret := createToken(t, data)

	t.Run("not while a server runs", func(t *testing.T) {
		address(t, "serve", "--json", "--listen", "127.0.0.1:0", "--data", data, "--no-measuring")
		if code, said := runs(t, "backup", file, "--data", data); code != exitUsage || !strings.Contains(said, "stop it first") {
			t.Errorf("%d: %s", code, said)
		}
	})
	for _, args := range [][]string{{"backup", file, "--data", data}, {"restore", file, "--data", other}, {"serve", "--verify", "--data", other}} {
		if code, said := runs(t, args...); code != exitOK {
			t.Fatalf("%v: %d: %s", args, code, said)
		}
	}
	if code, said := runs(t, "restore", file, "--data", other); code != exitUsage || !strings.Contains(said, "not empty") {
		t.Errorf("a second time: %d: %s", code, said)
	}
	list, err := token.Open(tokenFile(other))
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := list.Find(secret, time.Now()); !ok || found.Name != "alice" {
		t.Errorf("%+v, %v", found, ok)
	}
	q, err := job.Open(t.Context(), job.Config{Dir: filepath.Join(other, "jobs")})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if j, err := q.Get(t.Context(), id); err != nil || j.State != job.Queued {
		t.Errorf("%+v, %v", j, err)
	}
}

// TestServeVerify looks at a folder in which a bit was flipped.
func TestServeVerify(t *testing.T) {
	data := t.TempDir()
	id := oneJob(t, data)
	if code, said := runs(t, "serve", "--verify", "--data", data); code != exitOK || !strings.Contains(said, "as they were written") {
		t.Errorf("%d: %s", code, said)
	}
	blocks, err := filepath.Glob(filepath.Join(data, "jobs", "jetstream", "*", "streams", "KV_memorymark_records", "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("%v, %v", blocks, err)
	}
	block := testmachine.ReadFile(t, blocks[0])
	at := bytes.Index(block, []byte("queued"))
	block[at] ^= 2
	testmachine.WriteFile(t, blocks[0], block)
	for range 2 { // looking changes nothing
		if code, said := runs(t, "serve", "--verify", "--data", data); code != exitNo || !strings.Contains(said, id) {
			t.Errorf("%d: %s", code, said)
		}
	}
}

func oneJob(t *testing.T, data string) (id string) {
	t.Helper()
	q, err := job.Open(context.WithoutCancel(t.Context()), job.Config{Dir: filepath.Join(data, "jobs")})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	j, _, err := q.Submit(t.Context(), job.Request{Card: "t4", Payload: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return j.ID
}

func createToken(t *testing.T, data string) (secret string) {
	t.Helper()
	var out bytes.Buffer
	if code := Run(t.Context(), []string{"token", "create", "alice", "--data", data}, strings.NewReader(""), &out, io.Discard); code != exitOK {
		t.Fatal(code)
	}
	return strings.TrimSpace(out.String())
}
