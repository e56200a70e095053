package snapshotstore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
)

// temporary begins the names of files that are being written.
const temporary = "tmp-"

// Upload is a file on its way into the store. It ends with Commit or Abort.
type Upload struct {
	store *Store
	file  *os.File
	zstd  *zstd.Encoder
	hash  hash.Hash
	bytes int64
	held  int64 // of the quota
}

// Create begins a file.
func (s *Store) Create() (*Upload, error) {
	f, err := os.CreateTemp(s.dir, temporary+"*")
	if err != nil {
		return nil, wrap(err)
	}
	u := &Upload{store: s, file: f, hash: sha256.New()}
	// The fastest level packs snapshots to a twelfth, no worse than the default one.
	if u.zstd, err = zstd.NewWriter(quotaWriter{u}, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
		u.Abort()
		return nil, fmt.Errorf("store a snapshot: %w", err)
	}
	return u, nil
}

// Write adds to the file.
func (u *Upload) Write(data []byte) (int, error) {
	if u.bytes += int64(len(data)); u.bytes > u.store.opts.MaxBytes {
		return 0, ErrTooLarge
	}
	u.hash.Write(data)
	n, err := u.zstd.Write(data)
	if err != nil {
		err = wrap(err)
	}
	return n, err
}

// quotaWriter writes what was compressed, as far as there is space.
type quotaWriter struct{ u *Upload }

func (w quotaWriter) Write(data []byte) (int, error) {
	if err := w.u.store.reserve(int64(len(data))); err != nil {
		return 0, err
	}
	w.u.held += int64(len(data))
	return w.u.file.Write(data)
}

// Abort forgets the file.
func (u *Upload) Abort() {
	if u.file == nil {
		return
	}
	if u.zstd != nil {
		_ = u.zstd.Close() // what it has left goes into a file that is removed
	}
	u.file.Close()
	os.Remove(u.file.Name())
	u.release()
	u.file = nil
}

func (u *Upload) release() {
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	u.store.stored -= u.held
	u.held = 0
}

// Commit puts the file into the store; it is durable when this returns. One
// that is there already stays as it is.
func (u *Upload) Commit(name string, origin Origin) (Entry, error) {
	defer u.Abort() // does nothing after a success
	if err := u.zstd.Close(); err != nil {
		return Entry{}, wrap(err)
	}
	if err := errors.Join(u.file.Sync(), u.file.Close()); err != nil {
		return Entry{}, wrap(err)
	}
	e := Entry{
		ID: hex.EncodeToString(u.hash.Sum(nil)), Name: name, Origin: origin, Bytes: u.bytes, Stored: u.held,
		Created: time.Now().UTC().Truncate(time.Second),
	}
	s := u.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if there, ok := s.entries[e.ID]; ok {
		s.stored -= u.held
		u.held = 0
		os.Remove(u.file.Name())
		u.file = nil
		return there, nil
	}
	if err := os.Rename(u.file.Name(), s.path(e.ID, ".zst")); err != nil {
		return Entry{}, wrap(err)
	}
	u.file = nil
	if err := s.record(e); err != nil {
		os.Remove(s.path(e.ID, ".zst"))
		s.stored -= u.held
		return Entry{}, wrap(err)
	}
	s.entries[e.ID] = e
	return e, nil
}

// wrap says what was being done, but for the errors that callers know.
func wrap(err error) error {
	switch {
	case errors.Is(err, ErrFull) || errors.Is(err, ErrTooLarge):
		return err
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; the snapshot was not stored", ErrNoSpace)
	}
	return fmt.Errorf("store a snapshot: %w", err)
}

// record writes what is known of an entry, after which it exists.
func (s *Store) record(e Entry) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, temporary+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(f.Name())
		return err
	}
	if err := os.Rename(f.Name(), s.path(e.ID, ".json")); err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncFolder(s.dir)
}

// syncFolder makes renames durable.
func syncFolder(dir string) error {
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
