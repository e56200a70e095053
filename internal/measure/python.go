// Package measure runs real training steps: it finds this machine's card and
// Python, starts the embedded prober, speaks its protocol, and says why
// steps failed or what is missing.
package measure

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Python is an interpreter and how it was found.
type Python struct {
	Path string `json:"path"`
	From string `json:"from"` // what named it
}

// ErrNoPython says that no interpreter was found.
var ErrNoPython = errors.New("no Python was found")

// FindPython looks for an interpreter: the one that is named, that of
// $MEMORYMARK_PYTHON, that of the active virtual environment, python3.
func FindPython(named string, getenv func(string) string) (Python, error) {
	if named != "" {
		return lookUp(named, "--python")
	}
	if path := getenv("MEMORYMARK_PYTHON"); path != "" {
		return lookUp(path, "$MEMORYMARK_PYTHON")
	}
	if folder := getenv("VIRTUAL_ENV"); folder != "" {
		if p, err := lookUp(filepath.Join(folder, "bin", "python"), "$VIRTUAL_ENV"); err == nil {
			return p, nil
		}
	}
	p, err := lookUp("python3", "$PATH")
	if err != nil {
		return Python{}, ErrNoPython
	}
	return p, nil
}

func lookUp(name, from string) (Python, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Python{}, fmt.Errorf("%s: there is no Python at %s", from, name)
	}
	return Python{Path: path, From: from}, nil
}

// Environment is what an interpreter has to measure with. Versions are empty
// where a package is missing; then its error says why.
type Environment struct {
	Python            string  `json:"python"`
	Torch             string  `json:"torch,omitempty"`
	TorchError        string  `json:"torch_error,omitempty"`
	Transformers      string  `json:"transformers,omitempty"`
	TransformersError string  `json:"transformers_error,omitempty"`
	CUDA              string  `json:"cuda,omitempty"`  // what PyTorch was built for
	CuDNN             int64   `json:"cudnn,omitempty"` // 91900 is 9.19.0
	MPS               bool    `json:"mps,omitempty"`
	Cards             []Found `json:"cards,omitempty"`
	CUDAError         string  `json:"cuda_error,omitempty"`
}

// Found is a card as PyTorch sees it.
type Found struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory_bytes"`
	Free   int64  `json:"free_bytes"`
}

// inspectTime is how long looking may take: the first import of PyTorch from a
// slow disk takes half a minute, and minutes while other work runs.
const inspectTime = 10 * time.Minute

//go:embed inspect.py
var inspectScript string

// Inspect asks an interpreter what it has. Whatever its packages print is kept
// from the answer, which is the last line.
func Inspect(ctx context.Context, p Python) (*Environment, error) {
	ctx, stop := context.WithTimeout(ctx, inspectTime)
	defer stop()
	c := exec.CommandContext(ctx, p.Path, "-c", inspectScript)
	c.WaitDelay = killGrace // for output that something else holds open
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w%s", p.Path, err, lastLine(err))
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var e Environment
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
		return nil, fmt.Errorf("run %s: it does not behave like Python: %w", p.Path, err)
	}
	return &e, nil
}

// lastLine is the last line that a failed command printed, where Python says
// what was wrong.
func lastLine(err error) string {
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(failed.Stderr)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + last
	}
	return ""
}
