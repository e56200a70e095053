package measure

import (
	"fmt"
	"io"
	"sync"
)

// transcribed is a link whose lines are written down.
type transcribed struct {
	Link
	mu sync.Mutex
	to io.Writer
}

func (t *transcribed) note(direction string, line []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := fmt.Fprintf(t.to, "%s %s\n", direction, line); err != nil {
		return fmt.Errorf("write the transcript: %w", err)
	}
	return nil
}

// Send implements Link.
func (t *transcribed) Send(line []byte) error {
	if err := t.note(">", line); err != nil {
		return err
	}
	return t.Link.Send(line)
}

// Receive implements Link.
func (t *transcribed) Receive() ([]byte, error) {
	line, err := t.Link.Receive()
	if err == nil {
		err = t.note("<", line)
	}
	return line, err
}
