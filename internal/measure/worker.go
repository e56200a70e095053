package measure

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed worker/memorymark_worker/*.py
var workerFiles embed.FS

// workerModule is what Python runs, a package of that name.
const workerModule = "memorymark_worker"

// installWorker writes the worker's files to a private folder that is named
// after their content, so that other versions of MemoryMark never share one,
// and returns the folder to look for modules in.
func installWorker(cache string) (string, error) {
	files, sum, err := readWorker()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "worker-"+sum)
	if holds(folder, files) {
		return folder, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", fmt.Errorf("write the PyTorch worker: %w", err)
	}
	fresh, err := os.MkdirTemp(cache, "worker-")
	if err != nil {
		return "", fmt.Errorf("write the PyTorch worker: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }() // gone already, if all went well
	if err := writeWorker(fresh, files); err != nil {
		return "", fmt.Errorf("write the PyTorch worker: %w", err)
	}
	// Another process may be doing the same. Whoever comes second finds the
	// files, unless somebody has changed them.
	if err := os.Rename(fresh, folder); err == nil || holds(folder, files) {
		return folder, nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("replace a changed PyTorch worker: %w", err)
	}
	if err := os.Rename(fresh, folder); err != nil && !holds(folder, files) {
		return "", fmt.Errorf("write the PyTorch worker: %w", err)
	}
	return folder, nil
}

// readWorker returns the worker's files by name and a hash of them all.
func readWorker() (map[string][]byte, string, error) {
	files := make(map[string][]byte)
	hash := sha256.New()
	err := fs.WalkDir(workerFiles, "worker/"+workerModule, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := workerFiles.ReadFile(path)
		if err != nil {
			return err
		}
		files[d.Name()] = data
		fmt.Fprintf(hash, "%s %d\n", d.Name(), len(data))
		hash.Write(data)
		return nil
	})
	return files, hex.EncodeToString(hash.Sum(nil))[:16], err
}

func writeWorker(folder string, files map[string][]byte) error {
	inner := filepath.Join(folder, workerModule)
	if err := os.Mkdir(inner, 0o700); err != nil {
		return err
	}
	var failed error
	for name, data := range files {
		failed = errors.Join(failed, os.WriteFile(filepath.Join(inner, name), data, 0o600))
	}
	return failed
}

// holds reports whether a folder holds just these files.
func holds(folder string, files map[string][]byte) bool {
	for name, data := range files {
		found, err := os.ReadFile(filepath.Join(folder, workerModule, name))
		if err != nil || string(found) != string(data) {
			return false
		}
	}
	return true
}

// cacheFolder is where the worker is kept: the user's, or a temporary one.
func cacheFolder() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("memorymark-%d", os.Getuid()))
	}
	return filepath.Join(base, "memorymark")
}
