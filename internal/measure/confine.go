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

	"memorymark/internal/phantom"
	"memorymark/internal/sandbox"
)

// Confinement keeps a prober apart from this machine: it reads its Python, the
// prober and the code that it was given, and nothing else, and has no network.
type Confinement struct {
	Folder string // for what the sandbox reads; of the caller's, empty at first
	Memory int64  // that the prober may hold of this machine's
}

// Folders within the folder.
const (
	unpackedFolder = "unpacked"
	codeFolder     = "code"
	rootFolder     = "root"
)

// NewConfinement makes a folder for a sandbox, which Remove removes.
func NewConfinement(memory int64) (*Confinement, error) {
	folder, err := os.MkdirTemp("", "memorymark-code-")
	if err != nil {
		return nil, err
	}
	c := &Confinement{Folder: folder, Memory: memory}
	for _, name := range []string{unpackedFolder, codeFolder, rootFolder} {
		err = errors.Join(err, os.Mkdir(filepath.Join(folder, name), 0o700))
	}
	if err = errors.Join(err, letIn(folder)); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

// Remove removes the folder.
func (c *Confinement) Remove() error { return os.RemoveAll(c.Folder) }

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
	home, err := homeOf(ctx, p)
	if err != nil {
		return err
	}
	cmd, err := c.box(home, nil).Command(home.Executable, "-c", "pass")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return &sandbox.UnsupportedError{Err: fmt.Errorf("%w: %s", err, out)}
	}
	return nil
}

// start starts the prober in the sandbox.
func (c *Confinement) start(ctx context.Context, o *Options) (*process, error) {
	home, err := homeOf(ctx, o.Python)
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
		device, err := phantom.Install(ctx)
		if err == nil {
			device, err = device.CopyTo(unpacked)
		}
		if err != nil {
			return nil, err
		}
		nothing := func(string) (string, bool) { return "", false } // of our environment
		env = append(env, device.Environment(phantom.Settings{Card: o.Card}, nothing)...)
	}
	if err := letIn(unpacked); err != nil {
		return nil, err
	}
	cmd, err := c.box(home, env).Command(home.Executable, proberArguments(prober)...)
	if err != nil {
		return nil, err
	}
	return startProcess(cmd, c.Memory, o.Hurry)
}

func (c *Confinement) box(home *pythonHome, env []string) *sandbox.Box {
	if home.UserBase != "" {
		env = append(env, "PYTHONUSERBASE="+home.UserBase)
	}
	shown := []string{filepath.Join(c.Folder, unpackedFolder), filepath.Join(c.Folder, codeFolder)}
	return &sandbox.Box{
		Root: filepath.Join(c.Folder, rootFolder), Work: filepath.Join(c.Folder, codeFolder),
		Folders: append(shown, home.Folders...), Env: append(env, "LANG=C.UTF-8"), Memory: c.Memory,
	}
}

//go:embed home.py
var homeScript string

// pythonHome is where an interpreter has its files.
type pythonHome struct {
	Executable string   `json:"executable"`
	Folders    []string `json:"folders"`
	UserBase   string   `json:"user_base"` // "" if it looks for no packages of a user
}

func homeOf(ctx context.Context, p Python) (*pythonHome, error) {
	ctx, stop := context.WithTimeout(ctx, inspectTime)
	defer stop()
	c := exec.CommandContext(ctx, p.Path, "-c", homeScript)
	c.Env = append(os.Environ(), "PYTHONPATH=") // which may name anything
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w%s", p.Path, err, lastLine(err))
	}
	var home pythonHome
	if err := json.Unmarshal(out, &home); err != nil {
		return nil, fmt.Errorf("run %s: it does not behave like Python: %w", p.Path, err)
	}
	return &home, nil
}

// letIn lets everybody read a folder: the sandbox's user is another one where
// we are root.
func letIn(folder string) error {
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
