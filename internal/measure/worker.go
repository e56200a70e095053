package measure

import (
	"embed"
	"fmt"

	"memorymark/internal/unpack"
)

//go:embed worker/memorymark_worker/*.py
var workerFiles embed.FS

// workerModule is what Python runs, a package of that name.
const workerModule = "memorymark_worker"

// installWorker writes the worker's files to the cache and returns the folder
// to look for modules in.
func installWorker(cache string) (string, error) {
	files, err := unpack.Read(workerFiles, "worker")
	if err != nil {
		return "", err
	}
	folder, err := files.Into(cache, "worker", nil)
	if err != nil {
		return "", fmt.Errorf("write the PyTorch worker: %w", err)
	}
	return folder, nil
}
