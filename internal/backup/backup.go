// Package backup puts the data folder of a server into one file, and back.
//
// The file is a tar archive, packed by Zstandard, so that other programs can read
// it too. Its last entry lists the SHA-256 of all others: a backup without it was
// cut off, and one that does not fit it was damaged.
//
// The folder must be one that no process writes to; see lockfile.
package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Summary is what a backup holds.
type Summary struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"` // as they are in the folder
}

// manifestName is the last entry: the sums of the others by their names.
const manifestName = "memorymark-backup.json"

// skipped are names that mean nothing outside a running server.
var skipped = []string{"lock", "tokens.json.lock", ".probe"}

// ErrDamaged says that a backup is not as it was written.
var ErrDamaged = errors.New("the backup is damaged")

// Write writes the files of a folder.
func Write(to io.Writer, dir string) (s Summary, err error) {
	packed, err := zstd.NewWriter(to)
	if err != nil {
		return s, err
	}
	archive := tar.NewWriter(packed)
	sums := make(map[string]string)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || slices.Contains(skipped, d.Name()) {
			return err
		}
		name = filepath.ToSlash(name)
		n, sum, err := add(archive, path, name)
		sums[name] = sum
		s.Files++
		s.Bytes += n
		return err
	})
	if err != nil {
		return s, fmt.Errorf("back up %s: %w", dir, err)
	}
	manifest, err := json.Marshal(sums)
	if err != nil {
		return s, err
	}
	head := &tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(manifest)), ModTime: time.Now()}
	if err := archive.WriteHeader(head); err != nil {
		return s, err
	}
	_, err = archive.Write(manifest)
	return s, errors.Join(err, archive.Close(), packed.Close())
}

func add(archive *tar.Writer, path, name string) (n int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, "", err
	}
	head := &tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime()}
	if err := archive.WriteHeader(head); err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(archive, h), f)
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// Read makes a folder of a backup. The folder must not exist or be empty; it is
// there whole or not at all.
func Read(from io.Reader, dir string) (s Summary, err error) {
	entries, err := os.ReadDir(dir)
	if err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !slices.Contains(skipped, e.Name()) }) {
		return s, fmt.Errorf("%s is not empty", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return s, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".restoring-*")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(fresh) }() // after a success it is not there
	if s, err = unpack(from, fresh); err != nil {
		return s, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return s, err
	}
	return s, os.Rename(fresh, dir)
}

// unpack writes the files of a backup and compares them with their sums.
func unpack(from io.Reader, dir string) (s Summary, err error) {
	packed, err := zstd.NewReader(from)
	if err != nil {
		return s, err
	}
	defer packed.Close()
	archive := tar.NewReader(packed)
	sums := make(map[string]string)
	for {
		head, err := archive.Next()
		if err != nil {
			return s, errors.Join(ErrDamaged, fmt.Errorf("it ends too early: %w", err))
		}
		if head.Name == manifestName {
			break
		}
		n, sum, err := extract(archive, head, dir)
		if err != nil {
			return s, fmt.Errorf("restore %s: %w", head.Name, err)
		}
		sums[head.Name] = sum
		s.Files++
		s.Bytes += n
	}
	data, err := io.ReadAll(archive)
	if err == nil {
		_, err = io.Copy(io.Discard, packed) // its checksum comes last
	}
	if err != nil {
		return s, errors.Join(ErrDamaged, err)
	}
	got, err := json.Marshal(sums)
	if err != nil {
		return s, err
	}
	if !bytes.Equal(data, got) {
		return s, fmt.Errorf("%w: its files do not match their checksums", ErrDamaged)
	}
	return s, nil
}

func extract(archive *tar.Reader, head *tar.Header, dir string) (n int64, sum string, err error) {
	if head.Typeflag != tar.TypeReg || !filepath.IsLocal(head.Name) || strings.Contains(head.Name, `\`) {
		return 0, "", fmt.Errorf("%w: it may contain only files of its own folder", ErrDamaged)
	}
	path := filepath.Join(dir, filepath.FromSlash(head.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(f, h), &checked{archive})
	err = errors.Join(err, f.Sync(), f.Close(), os.Chtimes(path, time.Time{}, head.ModTime))
	return n, hex.EncodeToString(h.Sum(nil)), err
}

// checked tells what is wrong with a backup from what is wrong with the disk that it is
// restored to.
type checked struct{ io.Reader }

func (c *checked) Read(data []byte) (int, error) {
	n, err := c.Reader.Read(data)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errors.Join(ErrDamaged, err)
	}
	return n, err
}
