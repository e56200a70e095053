package snapshotstore

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"memorymark/internal/testmachine"
)

func put(t *testing.T, s *Store, data []byte, origin Origin) (Entry, error) {
	t.Helper()
	u, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(u, bytes.NewReader(data)); err != nil {
		u.Abort()
		return Entry{}, err
	}
	return u.Commit("x.pickle", origin)
}

// noise does not compress.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("snapshot "), 100_000)
	e, err := put(t, s, data, Uploaded)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if e.ID != hex.EncodeToString(sum[:]) || e.Bytes != int64(len(data)) || e.Stored >= e.Bytes/10 {
		t.Errorf("%+v", e)
	}
	again, err := put(t, s, data, Uploaded)
	if err != nil || again != e {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	if stored, _ := s.Usage(); stored != e.Stored {
		t.Errorf("%d bytes are counted, %d are stored", stored, e.Stored)
	}
	if s, err = Open(dir, Options{}); err != nil { // another process
		t.Fatal(err)
	}
	if list := s.List(); len(list) != 1 || !list[0].Created.Equal(e.Created) || list[0].ID != e.ID {
		t.Errorf("%+v", list)
	}
	r, err := s.Open(e.ID)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, data) || r.Close() != nil {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if err := s.Delete(e.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(e.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("after deleting: %v", err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("left over: %v", files)
	}
}

// No name that a request could contain reaches a file.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "store"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	testmachine.WriteFile(t, filepath.Join(dir, "secret.zst"), "x")
	for _, id := range []string{"../secret", "", ".", "/etc/passwd", "tmp-1"} {
		if _, err := s.Open(id); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
		if err := s.Delete(id); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestLimits(t *testing.T) {
	s, err := Open(t.TempDir(), Options{MaxBytes: 2 << 20, Quota: 5 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(t, s, noise(2<<20+1), Uploaded); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	prediction, err := put(t, s, noise(2<<20), Predicted)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := put(t, s, noise(2<<20), Uploaded); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(prediction.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("the prediction was not given up: %v", err)
	}
	if _, err := put(t, s, noise(2<<20), Uploaded); !errors.Is(err, ErrFull) {
		t.Errorf("beyond the quota: %v", err)
	}
	var sum int64
	for _, e := range s.List() {
		sum += e.Stored
	}
	if stored, _ := s.Usage(); stored != sum {
		t.Errorf("%d bytes are counted, %d are stored", stored, sum)
	}
	if n := s.Expire(time.Now().Add(89 * 24 * time.Hour)); n != 0 {
		t.Errorf("%d expired too early", n)
	}
	if n := s.Expire(time.Now().Add(91 * 24 * time.Hour)); n != 2 || len(s.List()) != 0 {
		t.Errorf("%d expired", n)
	}
}

// What a crash leaves behind is gone, and what was whole is not.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := put(t, s, noise(1000), Uploaded)
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Create() // never committed
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write(noise(5 << 20)); err != nil {
		t.Fatal(err)
	}
	lonely := hex.EncodeToString(make([]byte, 32))
	testmachine.WriteFile(t, filepath.Join(dir, lonely+".zst"), "x")
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if list := s.List(); len(list) != 1 || list[0].ID != whole.ID {
		t.Errorf("%+v", list)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("left: %v, %v", files, err)
	}
}

// TestDamage damages what was whole: it is named, restored if its bytes are
// there, and never removed.
func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		ending   string
		damage   func([]byte) []byte
		restored bool
	}{
		"a flipped bit of the bytes":       {".zst", func(data []byte) []byte { data[len(data)/2] ^= 4; return data }, false},
		"bytes that are cut off":           {".zst", func(data []byte) []byte { return data[:100] }, false},
		"a description that is no JSON":    {".json", func(data []byte) []byte { data[0] ^= 1; return data }, true},
		"a description of something else":  {".json", func(data []byte) []byte { return bytes.Replace(data, []byte(`"id":"`), []byte(`"id":"0`), 1) }, true},
		"a description that is cut to two": {".json", func(data []byte) []byte { return data[:2] }, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			e, err := put(t, s, noise(5000), Measured)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, e.ID+c.ending)
			data := testmachine.ReadFile(t, path)
			testmachine.WriteFile(t, path, c.damage(data))
			count, found, err := Verify(dir)
			if err != nil || count != 1 || len(found) != 1 || found[0].ID != e.ID || found[0].Restored != c.restored {
				t.Errorf("found %d, %+v, %v", count, found, err)
			}
			if s, err = Open(dir, Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Get(e.ID); c.restored && err != nil {
				t.Errorf("it is not restored: %v", err)
			}
			if name != "a flipped bit of the bytes" && len(s.Damages()) != 1 { // which is noticed when it is read
				t.Errorf("damages: %+v", s.Damages())
			}
			again, _ := filepath.Glob(filepath.Join(dir, "*", e.ID+".zst"))
			here, _ := filepath.Glob(filepath.Join(dir, e.ID+".zst"))
			if len(again)+len(here) != 1 {
				t.Errorf("the bytes are in %v and %v", again, here)
			}
		})
	}
}
