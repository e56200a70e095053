package backup

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/testmachine"

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

// A backup that was cut off or damaged anywhere leaves nothing behind. Only bits
// that mean nothing may flip, as Zstandard has some: then all is as it was.
func TestDamagedBackup(t *testing.T) {
	dir := folder(t)
	var file bytes.Buffer
	if _, err := Write(&file, dir); err != nil {
		t.Fatal(err)
	}
	want := contents(t, dir)
	delete(want, "lock")
	whole, flips, harmless := file.Bytes(), 0, 0
	for at := 0; at < len(whole); at += 5 {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		flips++
		parent := t.TempDir()
		_, err := Read(bytes.NewReader(flipped), filepath.Join(parent, "data"))
		switch {
		case err != nil:
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("a bit of byte %d of %d was flipped: %v", at, len(whole), err)
			}
			mustBeEmpty(t, parent)
		case !maps.Equal(contents(t, filepath.Join(parent, "data")), want):
			t.Errorf("a bit of byte %d of %d was flipped, and other files were restored", at, len(whole))
		default:
			harmless++
		}
		parent = t.TempDir()
		if _, err := Read(bytes.NewReader(whole[:at]), filepath.Join(parent, "data")); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at byte %d of %d: %v", at, len(whole), err)
		}
		mustBeEmpty(t, parent)
	}
	if harmless > flips/8 {
		t.Errorf("of %d flipped bits %d were not seen", flips, harmless)
	}
}

// TestDamagedInAFile damages a backup in the middle of a file that is already being
// restored.
func TestDamagedInAFile(t *testing.T) {
	dir, data := t.TempDir(), make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(data)
	testmachine.WriteFile(t, filepath.Join(dir, "snapshot"), data)
	var file bytes.Buffer
	if _, err := Write(&file, dir); err != nil {
		t.Fatal(err)
	}
	cut := file.Bytes()[:file.Len()/2]
	if _, err := Read(bytes.NewReader(cut), filepath.Join(t.TempDir(), "data")); !errors.Is(err, ErrDamaged) {
		t.Errorf("cut in a file: %v", err)
	}
}

// contents returns a folder's files by their names.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		data, rerr := os.ReadFile(path)
		files[filepath.ToSlash(name)] = string(data)
		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A forged backup writes nowhere else.
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
