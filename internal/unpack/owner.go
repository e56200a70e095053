package unpack

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// UnsafeError says that another user could change code that this one runs.
type UnsafeError struct{ Path, Problem string }

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s %s; code that is put there would run as this user", e.Path, e.Problem)
}

// Fix says what to do about it.
func (e *UnsafeError) Fix() string {
	return "set XDG_CACHE_HOME to a folder that only this user may change"
}

// writableByOthers are the bits of a mode that let a group or everyone write.
const writableByOthers = 0o022

// checkOwner returns an *UnsafeError unless a folder of a cache, the cache itself and
// the folder that it is in are this user's, and no others may write to what is loaded.
func checkOwner(folder string) error {
	cache := filepath.Dir(folder)
	real, err := filepath.EvalSymlinks(filepath.Dir(cache))
	if err != nil {
		return err
	}
	if err := checkAbove(real); err != nil {
		return err
	}
	if err := checkPath(cache); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return checkPath(path)
	})
}

// checkAbove checks a folder in which a cache is, and those above: no one else may put
// another in its place.
func checkAbove(folder string) error {
	for path := folder; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if info.Mode()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return &UnsafeError{path, "can be written by everyone"}
		}
		if path == folder && !IsOwn(info) && ownerOf(info) != 0 {
			return &UnsafeError{path, "belongs to another user"}
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}

func checkPath(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !IsOwn(info):
		return &UnsafeError{path, "belongs to another user"}
	case info.Mode()&fs.ModeSymlink == 0 && info.Mode()&writableByOthers != 0:
		return &UnsafeError{path, "can be written by other users"}
	}
	return nil
}

// IsOwn reports whether a file belongs to this user.
func IsOwn(info fs.FileInfo) bool { return ownerOf(info) == os.Geteuid() }

func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
