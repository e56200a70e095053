package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	for name, text := range map[string]string{
		"tokens.json": "{}", "lock": "process 1", "jobs/jetstream/$G/streams/s/msgs/1.blk": strings.Repeat("record ", 1000), "snapshots/a.zst": "bytes",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBackup(t *testing.T) {
	dir := folder(t)
	var file bytes.Buffer
	wrote, err := Write(&file, dir)
	if err != nil || wrote.Files != 3 {
		t.Fatalf("%+v, %v", wrote, err)
	}
	to := filepath.Join(t.TempDir(), "new", "data")
	read, err := Read(bytes.NewReader(file.Bytes()), to)
	if err != nil || read != wrote {
		t.Fatalf("%+v, %v, want %+v", read, err, wrote)
	}
	for _, name := range []string{"tokens.json", "jobs/jetstream/$G/streams/s/msgs/1.blk", "snapshots/a.zst"} {
		want, _ := os.ReadFile(filepath.Join(dir, name))
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", name, info.Mode())
		}
	}
	if _, err := Read(bytes.NewReader(file.Bytes()), to); err == nil {
		t.Error("it was restored over another folder")
	}
}

// A backup that was cut off or damaged anywhere leaves nothing behind.
func TestDamagedBackup(t *testing.T) {
	var file bytes.Buffer
	if _, err := Write(&file, folder(t)); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	for at := 0; at < len(whole); at += 7 {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x10
		for what, data := range map[string][]byte{"cut": whole[:at], "flipped": flipped} {
			parent := t.TempDir()
			if _, err := Read(bytes.NewReader(data), filepath.Join(parent, "data")); err == nil {
				t.Errorf("%s at byte %d of %d, and restored", what, at, len(whole))
			}
			if left, _ := os.ReadDir(parent); len(left) != 0 {
				t.Errorf("%s at byte %d: left %v", what, at, left)
			}
		}
	}
}

// A backup that somebody made up writes nowhere else.
func TestForeignPaths(t *testing.T) {
	for _, name := range []string{"../x", "/tmp/x", "a/../../x", `..\x`} {
		var file bytes.Buffer
		packed, _ := zstd.NewWriter(&file)
		archive := tar.NewWriter(packed)
		err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: 1})
		_, werr := archive.Write([]byte("x"))
		if err := errors.Join(err, werr, archive.Close(), packed.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(&file, filepath.Join(t.TempDir(), "data")); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
}
