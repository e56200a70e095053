package measure

import (
	"bytes"
	"sync"
)

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// tailSize is how much of a prober's output is kept: enough for a traceback.
const tailSize = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if extra := len(t.data) - tailSize; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(p), nil
}

// lines returns the last lines, at most that many.
func (t *tail) lines(most int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.data), []byte("\n"))
	return string(bytes.Join(lines[max(len(lines)-most, 0):], []byte("\n")))
}
