package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// makeEnvironment makes a virtual environment with two packages and what they
// need, and returns its Python. Nothing is cached: an environment is used once.
func makeEnvironment(ctx context.Context, python, folder string, p pair) (string, error) {
	if err := output(exec.CommandContext(ctx, python, "-m", "venv", "--clear", folder)); err != nil {
		return "", err
	}
	made := filepath.Join(folder, "bin", "python")
	return made, output(exec.CommandContext(ctx, made, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-compile", "--disable-pip-version-check",
		"torch=="+p.torch, "transformers=="+p.transformers, "numpy"))
}

// output runs a command; what it says is the error if it fails.
func output(cmd *exec.Cmd) error {
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, tail(text))
	}
	return nil
}

// tail is the end of what a command said.
func tail(text []byte) []byte {
	const most = 2000
	text = bytes.TrimSpace(text)
	return text[max(0, len(text)-most):]
}

// environment is what a Python has.
type environment struct {
	Torch        string `json:"torch"`
	CUDA         string `json:"cuda"`
	CuDNN        string `json:"cudnn"`
	Transformers string `json:"transformers"`
	Folder       string `json:"folder"` // of torch
}

const inspection = `
import json, os, torch, transformers
n = torch.backends.cudnn.version()
print(json.dumps({
    "torch": torch.__version__.split("+")[0], "cuda": torch.version.cuda, "cudnn": f"{n // 10000}.{n % 10000 // 100}.{n % 100}",
    "transformers": transformers.__version__, "folder": os.path.dirname(torch.__file__)}))
`

func inspect(ctx context.Context, python string) (*environment, error) {
	out, err := exec.CommandContext(ctx, python, "-c", inspection).Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its packages: %w", python, err)
	}
	e := &environment{}
	return e, json.Unmarshal(out, e)
}
