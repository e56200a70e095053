package measure

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"testing"
	"time"
)

// scripted is a link that says the next part of a script whenever it is asked
// something, and ends after the last one.
type scripted struct {
	mu    sync.Mutex
	parts [][]byte
	lines chan []byte
	ended bool
}

func newScripted(script []byte) *scripted {
	s := &scripted{parts: bytes.Split(script, []byte("\n\n")), lines: make(chan []byte, bytes.Count(script, []byte("\n"))+1)}
	_ = s.Send(nil) // the greeting comes unasked
	return s
}

func (s *scripted) Send([]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return io.ErrClosedPipe
	}
	if len(s.parts) > 0 {
		for line := range bytes.SplitSeq(s.parts[0], []byte("\n")) {
			s.lines <- line
		}
		s.parts = s.parts[1:]
	}
	if len(s.parts) == 0 {
		s.ended = true
		close(s.lines)
	}
	return nil
}

func (s *scripted) Receive() ([]byte, error) {
	select {
	case line, ok := <-s.lines:
		if ok {
			return line, nil
		}
	case <-time.After(20 * time.Millisecond): // the script leaves the session waiting
	}
	return nil, io.EOF
}

func (s *scripted) Output() string { return "" }

func (s *scripted) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.lines)
	}
	return nil
}

// probeOnce opens a session and probes. The prober is never silent here, so that it ends
// long before the context does.
func probeOnce(t *testing.T, l Link) {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	w := tiny(t)
	s, err := OpenLink(ctx, l, SessionOptions{Device: "cpu", Workload: w})
	if err != nil {
		return
	}
	defer s.Close()
	r, err := s.Probe(ctx, Probe{Workload: w, Batches: []int64{16, 32}, Steps: 2}, func(StepProgress) {})
	if err != nil {
		_ = err.Error()
		return
	}
	for _, o := range r.Outcomes { // what analyses rely on
		if o.Failure == nil && len(o.Steps) != 2 {
			t.Errorf("a report without all of its steps was believed: %+v", o)
		}
	}
}

// recorded is a transcript of a guiding probe on the CPU.
func recorded(f *testing.F) []byte {
	f.Helper()
	text, err := os.ReadFile("testdata/transcript.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// FuzzProberLines gives the session whatever a prober could say.
func FuzzProberLines(f *testing.F) {
	var script []byte
	for line := range bytes.Lines(recorded(f)) {
		if answer, ok := bytes.CutPrefix(line, []byte("< ")); ok {
			script = append(script, answer...)
		} else {
			script = append(script, '\n') // a request: what follows answers it
		}
	}
	f.Add(script)
	f.Add([]byte(`{"type":"hello","protocol":1}` + "\n\n" + `{"type":"failed","id":1}`))
	f.Add(bytes.Repeat([]byte(`{"type":"hello","protocol":1}`+"\n"), 2000))
	f.Fuzz(func(t *testing.T, script []byte) {
		probeOnce(t, newScripted(script))
	})
}
