package measure

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"memorymark/internal/emulate"
)

// environment is what the prober's environment has in addition to ours: for an emulated
// card, the library that takes the place of a GPU's.
func (o *SessionOptions) environment(ctx context.Context) ([]string, error) {
	if o.Card == nil {
		return o.Env, nil
	}
	device, err := emulate.Install(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Concat(o.Env, device.Environment(emulate.Settings{Card: o.Card}, os.LookupEnv)), nil
}

//go:embed emulation.py
var emulationScript string

// Emulator is what a Python emulates cards with. It looks only: that takes a
// moment, and nothing is imported.
func Emulator(ctx context.Context, p Python) (Versions, error) {
	ctx, stop := context.WithTimeout(ctx, inspectTime)
	defer stop()
	out, err := exec.CommandContext(ctx, p.Path, "-c", emulationScript).Output()
	if err != nil {
		return Versions{}, fmt.Errorf("run %s: %w%s", p.Path, err, lastLine(err))
	}
	var found struct {
		Versions
		CUDA string `json:"cuda"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return Versions{}, fmt.Errorf("run %s: it does not behave like Python: %w", p.Path, err)
	}
	switch {
	case found.Torch == "":
		return Versions{}, &RequirementError{Package: "torch", Detail: "it is not installed", Fix: p.Path + " -m pip install torch"}
	case found.CUDA == "":
		return Versions{}, &BuildError{Torch: found.Torch, python: p}
	}
	if err := checkVersions(p, found.Versions); err != nil {
		return Versions{}, err
	}
	_, err = emulate.Install(ctx)
	return found.Versions, err
}

// BuildError says that a PyTorch cannot use any GPU, not even an emulated one.
type BuildError struct {
	Torch  string // its version
	python Python
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("PyTorch %s is built without CUDA, so it cannot run on an emulated GPU", e.Torch)
}

// Fix says what to do about it.
func (e *BuildError) Fix() string {
	return "install a CUDA build, which needs no GPU: " + e.python.Path + " -m pip install --force-reinstall torch"
}
