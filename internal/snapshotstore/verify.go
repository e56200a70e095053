package snapshotstore

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Damage is a snapshot that is not as it was stored.
type Damage struct {
	ID       string
	Restored bool   // its bytes are there
	Outcome  string // what becomes of it
}

func (d Damage) String() string { return d.ID + ": " + d.Outcome }

// Verify reads every snapshot of a folder and compares it with its id. It
// changes nothing.
func Verify(dir string) (count int, damages []Damage, err error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("check snapshots: %w", err)
	}
	s := &Store{dir: dir}
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok || !validID(id) {
			continue
		}
		count++
		_, wrong := s.read(id)
		if bytes, err := s.sum(id); err != nil {
			damages = append(damages, Damage{id, false, "its bytes are damaged; upload it again (" + err.Error() + ")"})
		} else if wrong != nil {
			damages = append(damages, Damage{id, true, fmt.Sprintf("its %d bytes are intact; its name is lost", bytes)})
		}
	}
	return count, damages, nil
}

// sum reads a snapshot to its end, and reports whether it is what its id says.
func (s *Store) sum(id string) (bytes int64, err error) {
	f, err := os.Open(s.path(id, ".zst"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	d, err := zstd.NewReader(f, zstd.WithDecoderMaxMemory(maxDecoder), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	defer d.Close()
	h := sha256.New()
	if bytes, err = io.Copy(h, d); err != nil {
		return 0, err
	}
	if hex.EncodeToString(h.Sum(nil)) != id {
		return 0, errors.New("its SHA-256 does not match")
	}
	return bytes, nil
}

// damagedDir is where damaged files are kept as they were found.
const damagedDir = "damaged"

// rescue restores an entry whose description is damaged from its bytes, or sets
// the files aside.
func (s *Store) rescue(id string) {
	bytes, err := s.sum(id)
	if err == nil {
		info, statErr := os.Stat(s.path(id, ".zst"))
		if statErr == nil {
			e := Entry{ID: id, Origin: Uploaded, Bytes: bytes, Stored: info.Size(), Created: info.ModTime().UTC()}
			if s.record(e) == nil {
				s.entries[id] = e
				s.stored += e.Stored
				s.damages = append(s.damages, Damage{id, true, "its description was damaged; its bytes are intact, and its name is lost"})
				return
			}
		}
	}
	s.damages = append(s.damages, Damage{id, false, "it is damaged and was set aside in " + damagedDir + "; upload it again"})
	if os.MkdirAll(filepath.Join(s.dir, damagedDir), 0o700) != nil {
		return
	}
	for _, ending := range []string{".json", ".zst"} {
		_ = os.Rename(s.path(id, ending), filepath.Join(s.dir, damagedDir, id+ending)) // if it stays, it is found again
	}
}

// Damages is what was found when the store was opened.
func (s *Store) Damages() []Damage { return s.damages }

// read reads an entry if it fits its file.
func (s *Store) read(id string) (e Entry, err error) {
	data, err := os.ReadFile(s.path(id, ".json"))
	if err != nil {
		return e, err
	}
	info, err := os.Stat(s.path(id, ".zst"))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, err
	}
	if e.ID != id || e.Stored != info.Size() {
		return e, errors.New("it does not match its file")
	}
	return e, nil
}
