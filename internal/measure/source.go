package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// readTime is how long reading source may take.
const readTime = time.Minute

// ReadSource has a Python read a file by a script, which runs nothing of the file, and
// returns what the script writes. PyTorch is not needed.
func ReadSource(ctx context.Context, p Python, script, file string) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, readTime)
	defer stop()
	c := exec.CommandContext(ctx, p.Path, "-I", "-c", script, file)
	c.WaitDelay = killGrace
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && !strings.Contains(stderr.String(), "Traceback") {
		return nil, errors.New(strings.TrimSpace(stderr.String()))
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("read %s with %s, which must be Python 3.10 or later: %w: %s", file, p.Path, err, lines[len(lines)-1])
	}
	return out, nil
}
