package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// commit matches what Git calls one.
var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

func (h *Hub) folder(id string) string {
	return filepath.Join(h.Cache, "models--"+strings.ReplaceAll(id, "/", "--"))
}

// Cached looks a model up in the local cache. Without its config.json, but with
// another file that says what it is, the error is a *NoModelError; a model that is
// not there is nil.
func (h *Hub) Cached(name string) (*RemoteModel, error) {
	id, revision, ok := ParseID(name)
	if !ok {
		return nil, nil
	}
	if !commit.MatchString(revision) {
		// A file that cannot be read gives no text, which is no commit.
		text, _ := os.ReadFile(filepath.Join(h.folder(id), "refs", filepath.FromSlash(revision)))
		if revision = strings.TrimSpace(string(text)); !commit.MatchString(revision) {
			return nil, nil
		}
	}
	var other error
	for _, file := range describing {
		data, err := readFile(filepath.Join(h.folder(id), "snapshots", revision, file))
		switch {
		case err != nil:
		case file == "config.json":
			return newModel(id, revision, data, true)
		case other == nil:
			other = notOneModel(id, file, data)
		}
	}
	return nil, other
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxConfig {
		return nil, errTooLarge
	}
	return os.ReadFile(path)
}

// store writes a config.json into the cache, where transformers finds it too.
func (h *Hub) store(id, revision string, got *file) error {
	folder, etag := h.folder(id), got.etag
	if !plainName.MatchString(etag) {
		sum := sha256.Sum256(got.data)
		etag = hex.EncodeToString(sum[:])
	}
	blob := filepath.Join(folder, "blobs", etag)
	link := filepath.Join(folder, "snapshots", got.commit, "config.json")
	if err := writeFile(blob, got.data); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(link), blob)
	if err != nil {
		return err
	}
	if err := os.Symlink(target, link); err != nil && !errors.Is(err, os.ErrExist) {
		if err := writeFile(link, got.data); err != nil { // file systems without links
			return err
		}
	}
	if commit.MatchString(revision) {
		return nil
	}
	return writeFile(filepath.Join(folder, "refs", filepath.FromSlash(revision)), []byte(got.commit))
}

// plainName matches ETags that can name a file.
var plainName = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// writeFile replaces a file as a whole: others may read it meanwhile.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".memorymark-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // unless it was renamed
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
