package measure

import (
	"bufio"
	"bytes"
	"context"
	"os/exec"
	"strings"
	"time"

	"memorymark/internal/gpu"
)

// cardQueryTime is how long nvidia-smi may take: with a driver that hangs, the
// answer is worth more than the card.
const cardQueryTime = 3 * time.Second

// ThisCard returns the first card of this machine, if it has one that the
// catalog knows.
func ThisCard(ctx context.Context) (*gpu.Card, bool) {
	name, ok := CardName(ctx)
	if !ok {
		return nil, false
	}
	card, err := gpu.Find(name)
	return card, err == nil
}

// CardName returns the name of this machine's first card, if it has one. It
// asks nvidia-smi, which comes with every driver.
func CardName(ctx context.Context) (string, bool) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return "", false
	}
	ctx, stop := context.WithTimeout(ctx, cardQueryTime)
	defer stop()
	out, err := exec.CommandContext(ctx, path, "--query-gpu=name", "--format=csv,noheader").Output()
	if err != nil {
		return "", false
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	ok := lines.Scan()
	return strings.TrimSpace(lines.Text()), ok
}
