// Package snapshotstore keeps snapshot files: under the SHA-256 of what they
// are, so that the same file is there once; compressed; whole or not at all,
// whatever crashes; and no more than a quota of them for no longer than a time.
//
// A file is two: ID.zst with the bytes, and ID.json with what is known of
// them, which is written last. One without the other is a crash's and removed.
package snapshotstore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Options bound what is kept. Zero fields stand for the defaults.
type Options struct {
	MaxBytes int64         // of one file, as it is uploaded: 4 GiB
	Quota    int64         // of all files, as they are stored: 20 GiB
	Age      time.Duration // after which a file is removed: 90 days
}

func (o Options) withDefaults() Options {
	return Options{
		MaxBytes: cmp.Or(o.MaxBytes, 4<<30), Quota: cmp.Or(o.Quota, 20<<30), Age: cmp.Or(o.Age, 90*24*time.Hour),
	}
}

// Errors that callers tell apart.
var (
	ErrNotFound = errors.New("no such snapshot")
	ErrTooLarge = errors.New("the file is larger than this server accepts")
	ErrFull     = errors.New("the snapshot quota is full; delete some snapshots")
	ErrNoSpace  = errors.New("the server's disk is full")
)

// Origin says how a snapshot came to be.
type Origin string

// The origins.
const (
	Uploaded  Origin = "uploaded"
	Measured  Origin = "measured"
	Predicted Origin = "predicted" // can be made again, so it goes first when space is needed
)

// Entry is a file of the store.
type Entry struct {
	ID      string    `json:"id"` // SHA-256 of its bytes
	Name    string    `json:"name,omitempty"`
	Origin  Origin    `json:"origin"`
	Bytes   int64     `json:"bytes"`        // as uploaded
	Stored  int64     `json:"stored_bytes"` // on the disk
	Created time.Time `json:"created"`
}

// Store is a folder of snapshots. One process has it.
type Store struct {
	dir  string
	opts Options

	mu      sync.Mutex
	entries map[string]Entry
	stored  int64 // of all entries and of what is being written
	damages []Damage
}

// Open opens a folder, made if need be, and removes what crashes left in it.
func Open(dir string, opts Options) (*Store, error) {
	s := &Store{dir: dir, opts: opts.withDefaults(), entries: make(map[string]Entry)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	for _, f := range files {
		if id, ok := strings.CutSuffix(f.Name(), ".json"); ok && validID(id) {
			s.load(id)
		}
	}
	for _, f := range files {
		id := strings.TrimSuffix(strings.TrimSuffix(f.Name(), ".json"), ".zst")
		if _, ok := s.entries[id]; !ok && (validID(id) || strings.HasPrefix(f.Name(), temporary)) {
			os.Remove(filepath.Join(dir, f.Name()))
		}
	}
	return s, nil
}

// load takes in an entry. One without its bytes, or with a description that
// does not fit them, is not what a crash leaves: the description comes last.
func (s *Store) load(id string) {
	e, err := s.read(id)
	if err != nil {
		s.rescue(id)
		return
	}
	s.entries[id] = e
	s.stored += e.Stored
}

var idPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// validID keeps everything that is not an id away from the file system.
func validID(id string) bool { return idPattern.MatchString(id) }

func (s *Store) path(id, ending string) string { return filepath.Join(s.dir, id+ending) }

// Get returns what is known of a file.
func (s *Store) Get(id string) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok {
		return Entry{}, ErrNotFound
	}
	return e, nil
}

// List returns the files, the newest first.
func (s *Store) List() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Entry, 0, len(s.entries))
	for _, e := range s.entries {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return out
}

// Usage returns how many bytes are on the disk, and how many may be.
func (s *Store) Usage() (stored, quota int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored, s.opts.Quota
}

// MaxUpload is how many bytes a file may have, as it is uploaded.
func (s *Store) MaxUpload() int64 { return s.opts.MaxBytes }

// maxDecoder bounds what decompressing may take; our own encoder needs less.
const maxDecoder = 64 << 20

// Open returns the bytes of a file as they were uploaded. What it returns says
// how many there are, by Size.
func (s *Store) Open(id string) (io.ReadCloser, error) {
	e, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(s.path(id, ".zst"))
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	d, err := zstd.NewReader(f, zstd.WithDecoderMaxMemory(maxDecoder), zstd.WithDecoderConcurrency(1))
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	return &opened{d, f, e.Bytes}, nil
}

type opened struct {
	*zstd.Decoder
	f    *os.File
	size int64
}

func (o *opened) Size() int64 { return o.size }

func (o *opened) Close() error {
	o.Decoder.Close()
	return o.f.Close()
}

// Delete removes a file.
func (s *Store) Delete(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.entries[id]; !ok {
		return ErrNotFound
	}
	return s.remove(id)
}

// remove removes an entry; the lock is held. What says that the file is there
// goes first.
func (s *Store) remove(id string) error {
	if err := os.Remove(s.path(id, ".json")); err != nil {
		return fmt.Errorf("delete snapshot: %w", err)
	}
	os.Remove(s.path(id, ".zst")) // if it stays, Open removes it
	s.stored -= s.entries[id].Stored
	delete(s.entries, id)
	return nil
}

// Expire removes the files that are too old, and returns how many.
func (s *Store) Expire(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for id, e := range s.entries {
		if now.Sub(e.Created) > s.opts.Age && s.remove(id) == nil {
			n++
		}
	}
	return n
}

// reserve makes space for more bytes on the disk, if need be by removing
// predictions, the oldest first.
func (s *Store) reserve(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.stored+n > s.opts.Quota {
		oldest := ""
		for id, e := range s.entries {
			if e.Origin == Predicted && (oldest == "" || e.Created.Before(s.entries[oldest].Created)) {
				oldest = id
			}
		}
		if oldest == "" {
			return ErrFull
		}
		if err := s.remove(oldest); err != nil {
			return err
		}
	}
	s.stored += n
	return nil
}
