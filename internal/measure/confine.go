package measure

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"memorymark/internal/emulate"
	"memorymark/internal/lockfile"
	"memorymark/internal/sandbox"
	"memorymark/internal/unpack"
)

// Confinement keeps a prober apart from this machine: it reads its Python, the
// prober and the code that it was given, and nothing else, and has no network.
type Confinement struct {
	Folder string // for what the sandbox reads; other users cannot enter it
	Memory int64  // that the prober may hold of this machine's

	lock *lockfile.Lock // while this process has the folder
}

// Folders within the folder.
const (
	unpackedFolder = "unpacked"
	codeFolder     = "code"
	rootFolder     = "root"
)

// Names in the temporary folder. A folder gets the second one when it is locked.
const (
	confinementBegun = "memorymark-begun-"
	confinementName  = "memorymark-code-"
	confinementLock  = "lock"
)

// NewConfinement makes a folder for a sandbox, which Remove removes, and removes
// those of processes that were killed.
func NewConfinement(memory int64) (*Confinement, error) {
	if err := removeAbandoned(os.TempDir()); err != nil {
		return nil, err
	}
	begun, err := os.MkdirTemp("", confinementBegun) // for this user alone
	if err != nil {
		return nil, err
	}
	c := &Confinement{Folder: filepath.Join(filepath.Dir(begun), confinementName+strings.TrimPrefix(filepath.Base(begun), confinementBegun)), Memory: memory}
	if c.lock, err = lockfile.Try(filepath.Join(begun, confinementLock)); err == nil {
		err = os.Rename(begun, c.Folder)
	}
	for _, name := range []string{unpackedFolder, codeFolder, rootFolder} {
		if err == nil {
			err = letIn(filepath.Join(c.Folder, name))
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Remove(), os.RemoveAll(begun))
	}
	return c, nil
}

// removeAbandoned removes the folders whose process did not come to do it: they hold
// code that was submitted.
func removeAbandoned(temporary string) error {
	entries, err := os.ReadDir(temporary)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), confinementName) || !unpack.IsOwn(info) {
			continue
		}
		folder := filepath.Join(temporary, e.Name())
		lock, err := lockfile.Try(filepath.Join(folder, confinementLock))
		if err != nil {
			continue // it is in use
		}
		if err := errors.Join(os.RemoveAll(folder), lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the folder.
func (c *Confinement) Remove() error {
	err := os.RemoveAll(c.Folder)
	if c.lock != nil {
		err = errors.Join(err, c.lock.Close())
	}
	return err
}

// WriteCode puts a user's files into the sandbox and returns the model that one
// of them makes.
func (c *Confinement) WriteCode(files map[string]string, file, function string) (*UserModel, error) {
	folder := filepath.Join(c.Folder, codeFolder)
	for name, text := range files {
		if name != filepath.Base(name) {
			return nil, fmt.Errorf("%q is not a file's name", name)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return &UserModel{Path: file, Function: function}, letIn(folder) // it is where the prober starts
}

// Check reports why code cannot be confined on this system, an
// *sandbox.UnsupportedError.
func (c *Confinement) Check(ctx context.Context, p Python) error {
	python, err := filesOf(ctx, p)
	if err != nil {
		return err
	}
	cmd, err := c.box(python, nil).Command(python.Executable, "-c", "pass")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return &sandbox.UnsupportedError{Err: fmt.Errorf("%w: %s", err, out)}
	}
	return nil
}

// start starts the prober in the sandbox.
func (c *Confinement) start(ctx context.Context, o *SessionOptions) (*process, error) {
	python, err := filesOf(ctx, o.Python)
	if err != nil {
		return nil, err
	}
	unpacked := filepath.Join(c.Folder, unpackedFolder)
	prober, err := installProber(unpacked)
	if err != nil {
		return nil, err
	}
	env := o.Env
	if o.Card != nil {
		device, err := emulate.Install(ctx)
		if err == nil {
			device, err = device.CopyTo(unpacked)
		}
		if err != nil {
			return nil, err
		}
		nothing := func(string) (string, bool) { return "", false } // of our environment
		env = append(env, device.Environment(emulate.Settings{Card: o.Card}, nothing)...)
	}
	if err := letIn(unpacked); err != nil {
		return nil, err
	}
	cmd, err := c.box(python, env).Command(python.Executable, proberArguments(prober)...)
	if err != nil {
		return nil, err
	}
	return startProcess(cmd, c.Memory, countCode, o.Hurry)
}

func (c *Confinement) box(python *pythonFiles, env []string) *sandbox.Box {
	if python.UserBase != "" {
		env = append(env, "PYTHONUSERBASE="+python.UserBase)
	}
	shown := []string{filepath.Join(c.Folder, unpackedFolder), filepath.Join(c.Folder, codeFolder)}
	return &sandbox.Box{
		Root: filepath.Join(c.Folder, rootFolder), Work: filepath.Join(c.Folder, codeFolder),
		Folders: append(shown, python.Folders...), Env: append(env, "LANG=C.UTF-8"), Memory: c.Memory,
	}
}

//go:embed files.py
var filesScript string

// pythonFiles is where an interpreter has its files.
type pythonFiles struct {
	Executable string   `json:"executable"`
	Folders    []string `json:"folders"`
	UserBase   string   `json:"user_base"` // "" if it looks for no packages of a user
}

func filesOf(ctx context.Context, p Python) (*pythonFiles, error) {
	ctx, stop := context.WithTimeout(ctx, inspectTime)
	defer stop()
	c := exec.CommandContext(ctx, p.Path, "-c", filesScript)
	c.Env = append(os.Environ(), "PYTHONPATH=") // which may name anything
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w%s", p.Path, err, lastLine(err))
	}
	var python pythonFiles
	if err := json.Unmarshal(out, &python); err != nil {
		return nil, fmt.Errorf("run %s: it does not behave like Python: %w", p.Path, err)
	}
	return &python, nil
}

// letIn makes a folder, if there is none, and lets who reaches it read what is in it:
// the sandbox's user is another one where we are root.
func letIn(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // see above
		return err
	}
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.Type()&fs.ModeSymlink != 0:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o755) //nolint:gosec // see above
		default:
			return os.Chmod(path, 0o644) //nolint:gosec // see above
		}
	})
}
