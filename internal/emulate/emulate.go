// Package emulate is a CUDA device that is not there: a library (library/*.c)
// that stands in for NVIDIA's below PyTorch, and what runs in the process of the user's
// program in Python (python/). The user's own PyTorch runs on it, whatever its
// version, with the allocations it would make on a real card.
//
// The library is built once with the machine's C compiler, against no headers
// but the C library's, or comes built with a release.
package emulate

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"memorymark/internal/unpack"
)

//go:embed library/*.c library/*.h
var sources embed.FS

//go:embed python/sitecustomize.py python/memorymark_emulate/*.py
var pythonFiles embed.FS

// built has the library for each architecture, where a release built it.
//
//go:embed built
var built embed.FS

// Installation is an installed emulator: folders that a program is started with.
type Installation struct {
	library string // with libcuda.so.1 and the names it is looked for by
	python  string // with sitecustomize
}

// ErrUnsupported says that there is no emulator for this system.
var ErrUnsupported = errors.New("emulation needs Linux on x86-64 or arm64, like CUDA builds of PyTorch")

// CompilerError says that the library could not be built.
type CompilerError struct {
	Detail string
}

func (e *CompilerError) Error() string { return "build the emulated GPU's library: " + e.Detail }

// Fix says what to do about it.
func (e *CompilerError) Fix() string {
	return "install a C compiler (apt-get install gcc libc6-dev), or use a release of MemoryMark, which brings the library built"
}

// Install makes the library and the Python side ready in the cache. Only the
// first time takes longer than looking.
func Install(ctx context.Context) (*Installation, error) {
	return installIn(ctx, unpack.Cache())
}

// CopyTo is the device in another folder, for who cannot read the cache.
func (d *Installation) CopyTo(folder string) (*Installation, error) {
	out := &Installation{library: filepath.Join(folder, "emulate"), python: filepath.Join(folder, "emulate-python")}
	return out, errors.Join(os.CopyFS(out.library, os.DirFS(d.library)), os.CopyFS(out.python, os.DirFS(d.python)))
}

// Supported reports whether there is an emulator for this system.
func Supported() bool {
	return runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")
}

func installIn(ctx context.Context, cache string) (*Installation, error) {
	if !Supported() {
		return nil, ErrUnsupported
	}
	python, err := unpack.Read(pythonFiles, "python")
	if err != nil {
		return nil, err
	}
	d := &Installation{}
	if d.python, err = python.Into(cache, "emulate-python", nil); err != nil {
		return nil, fmt.Errorf("write the emulated GPU's Python side: %w", err)
	}
	if d.library, err = installLibrary(ctx, cache); err != nil {
		return nil, err
	}
	return d, nil
}

func installLibrary(ctx context.Context, cache string) (string, error) {
	if data, err := built.ReadFile("built/" + runtime.GOARCH + ".so"); err == nil {
		files := unpack.Files{libraryName: data}
		folder, err := files.Into(cache, "emulate", link)
		if err != nil {
			return "", fmt.Errorf("write the emulated GPU's library: %w", err)
		}
		return folder, nil
	}
	files, err := unpack.Read(sources, "library")
	if err != nil {
		return "", err
	}
	return files.Into(cache, "emulate", func(folder string) error {
		return errors.Join(compile(ctx, folder), link(folder))
	})
}

// libraryName is what the library is loaded as: the driver, before the real one.
const libraryName = "libcuda.so.1"

// link adds the other names that it is looked for by: Triton links with one,
// PyTorch asks for NVML by the other.
func link(folder string) error {
	var failed error
	for _, name := range []string{"libcuda.so", "libnvidia-ml.so.1"} {
		failed = errors.Join(failed, os.Symlink(libraryName, filepath.Join(folder, name)))
	}
	return failed
}

// compilers are tried in this order.
func compilers() []string {
	names := []string{"cc", "gcc", "clang"}
	if named := os.Getenv("CC"); named != "" {
		names = append([]string{named}, names...)
	}
	return names
}

// Flags that the library is built with. It relies on -O2: see loader.c.
var compileFlags = []string{
	"-O2", "-std=gnu11", "-fPIC", "-shared", "-s", "-fvisibility=hidden", "-Wl,-soname," + libraryName,
}

// compile builds the library from the sources in a folder, into it.
func compile(ctx context.Context, folder string) error {
	for _, name := range compilers() {
		if path, err := exec.LookPath(name); err == nil {
			return compileWith(ctx, path, folder, filepath.Join(folder, libraryName))
		}
	}
	return &CompilerError{Detail: "no C compiler was found"}
}

func compileWith(ctx context.Context, compiler, folder, out string) error {
	list, err := fs.Glob(os.DirFS(folder), "*.c") // the folder's own name may have brackets
	if err != nil {
		return err
	}
	for i := range list {
		list[i] = filepath.Join(folder, list[i])
	}
	args := slices.Concat(compileFlags, []string{"-o", out}, list, []string{"-ldl", "-lpthread"})
	if text, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return &CompilerError{Detail: fmt.Sprintf("%s: %v: %s", compiler, err, firstLine(text))}
	}
	return nil
}

// Build builds the library with a compiler, for a release.
func Build(ctx context.Context, compiler, out string) error {
	files, err := unpack.Read(sources, "library")
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "memorymark-emulate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	from, err := files.Into(folder, "emulate", nil)
	if err != nil {
		return err
	}
	return compileWith(ctx, compiler, from, out)
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
