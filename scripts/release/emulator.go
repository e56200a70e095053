package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"memorymark/internal/emulate"
)

// builtFolder is where the program embeds the emulated GPU's library from.
const builtFolder = "internal/emulate/built"

// crossCompilers are Debian's names, by architecture.
var crossCompilers = map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}

// buildEmulator builds the library that emulates a GPU for the Linux platforms, so
// that users need no compiler. What it returns removes them.
func buildEmulator(ctx context.Context, platforms []platform) (remove func(), err error) {
	var files []string
	remove = func() {
		for _, file := range files {
			_ = os.Remove(file) // they are ignored by git, and made again
		}
	}
	for _, p := range platforms {
		if p.os != "linux" {
			continue
		}
		arch, compiler := p.arch, crossCompilers[p.arch]
		if arch == runtime.GOARCH && runtime.GOOS == "linux" {
			compiler = "cc"
		}
		if _, err := exec.LookPath(compiler); err != nil {
			return remove, fmt.Errorf("the library for linux-%s is built with %s, which is not here: apt-get install gcc-%s", arch, compiler, map[string]string{"amd64": "x86-64-linux-gnu", "arm64": "aarch64-linux-gnu"}[arch])
		}
		file := filepath.Join(builtFolder, arch+".so")
		files = append(files, file)
		if err := emulate.Build(ctx, compiler, file); err != nil {
			return remove, errors.Join(err, fmt.Errorf("for linux-%s", arch))
		}
	}
	return remove, nil
}
