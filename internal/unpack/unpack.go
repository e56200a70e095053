// Package unpack puts files that are embedded in the program where other
// programs can read them: in folders of the user's cache that are named after
// their content, so that versions of MemoryMark never share one.
package unpack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Cache is the folder for what is unpacked: the user's, or a temporary one.
func Cache() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("memorymark-%d", os.Getuid()))
	}
	return filepath.Join(base, "memorymark")
}

// Files are named by their slash-separated paths.
type Files map[string][]byte

// Read returns the files below a folder of a file system, by their paths in it.
func Read(from fs.FS, folder string) (Files, error) {
	files := make(Files)
	err := fs.WalkDir(from, folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		files[name[len(path.Clean(folder))+1:]] = data
		return err
	})
	return files, err
}

// Sum is a short hash of the files and their names.
func (f Files) Sum() string {
	names := make([]string, 0, len(f))
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	hash := sha256.New()
	for _, name := range names {
		fmt.Fprintf(hash, "%s %d\n", name, len(f[name]))
		hash.Write(f[name])
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// Into makes sure that a folder of the cache, named after a kind of thing and
// its sum, holds the files and what finish adds to them, and returns its path.
// Finish, which may be nil, is called with a fresh folder that no other process
// sees yet. Files that were changed are written again. A folder that other users
// may change is an *UnsafeError.
func (f Files) Into(cache, kind string, finish func(folder string) error) (string, error) {
	folder := filepath.Join(cache, kind+"-"+f.Sum())
	if !f.in(folder) {
		if err := f.writeInto(cache, kind, folder, finish); err != nil {
			return "", err
		}
	}
	return folder, checkOwner(folder)
}

// writeInto writes what Into is to find.
func (f Files) writeInto(cache, kind, folder string, finish func(folder string) error) error {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(cache, kind+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }() // gone already, if all went well
	if err := f.write(fresh); err != nil {
		return err
	}
	if finish != nil {
		if err := finish(fresh); err != nil {
			return err
		}
	}
	// Another process may be doing the same. The second one finds the files, unless
	// they were changed.
	if err := os.Rename(fresh, folder); err == nil || f.in(folder) {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("replace changed files: %w", err)
	}
	if err := os.Rename(fresh, folder); err != nil && !f.in(folder) {
		return err
	}
	return nil
}

func (f Files) write(folder string) error {
	var failed error
	for name, data := range f {
		file := filepath.Join(folder, filepath.FromSlash(name))
		failed = errors.Join(failed, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600))
	}
	return failed
}

// in reports whether a folder holds these files.
func (f Files) in(folder string) bool {
	for name, data := range f {
		found, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(found, data) {
			return false
		}
	}
	return true
}
