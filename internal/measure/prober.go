package measure

import (
	"embed"
	"fmt"

	"memorymark/internal/unpack"
)

//go:embed prober/memorymark_prober/*.py
var proberFiles embed.FS

// proberModule is what Python runs, a package of that name.
const proberModule = "memorymark_prober"

// installProber writes the prober's files to the cache and returns the folder
// to look for modules in.
func installProber(cache string) (string, error) {
	files, err := unpack.Read(proberFiles, "prober")
	if err != nil {
		return "", err
	}
	folder, err := files.Into(cache, "prober", nil)
	if err != nil {
		return "", fmt.Errorf("write the prober: %w", err)
	}
	return folder, nil
}
