package measure

import (
	"context"
	"fmt"
	"os"
	"slices"

	"memorymark/internal/phantom"
)

// environment is what the prober's environment has beside ours: for an emulated
// card, the library that takes the place of a GPU's.
func (o *Options) environment(ctx context.Context) ([]string, error) {
	if o.Card == nil {
		return o.Env, nil
	}
	device, err := phantom.Install(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Concat(o.Env, device.Environment(phantom.Settings{Card: o.Card}, os.LookupEnv)), nil
}

// BuildError says that a PyTorch cannot use any GPU, not even an emulated one.
type BuildError struct {
	Torch  string // its version
	python Python
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("PyTorch %s is built without CUDA, so it cannot run on an emulated GPU", e.Torch)
}

// Mend is what helps.
func (e *BuildError) Mend() string {
	return "install a CUDA build, which needs no GPU: " + e.python.Path + " -m pip install --force-reinstall torch"
}
