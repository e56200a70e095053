package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"memorymark/internal/sandbox"
)

// flooding is a link whose prober, once it is asked for a probe, sends long messages
// as fast as it can.
type flooding struct {
	*scripted
	probes chan struct{}
	line   []byte
	sent   int
}

func (f *flooding) Send(line []byte) error {
	if bytes.Contains(line, []byte(`"type":"probe"`)) {
		close(f.probes)
		return nil
	}
	return f.scripted.Send(line)
}

func (f *flooding) Receive() ([]byte, error) {
	select {
	case line := <-f.lines:
		return line, nil
	case <-f.probes:
	}
	if f.sent += len(f.line); f.sent > 4<<30 {
		return nil, io.EOF
	}
	return bytes.Clone(f.line), nil
}

// A prober that floods this process does not fill it.
func TestFlood(t *testing.T) {
	w := tiny(t)
	f := &flooding{
		scripted: newScripted([]byte(`{"type":"hello","protocol":1,"python":"3.11.7"}` + "\n\n" +
			`{"type":"ready","id":1,"torch":"2.11.0","transformers":"5.17.0"}` + "\n" + `{"type":"result","id":2,"device":"cpu"}` + "\n\n" + "{}")),
		probes: make(chan struct{}),
		line:   fmt.Appendf(nil, `{"type":"step","id":3,"text":"%s"}`, strings.Repeat("x", 4<<20)),
	}
	s, err := OpenLink(t.Context(), f, SessionOptions{Device: "cpu", Workload: w})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slow := func(StepProgress) { time.Sleep(50 * time.Millisecond) }
	_, err = s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{16}, Steps: 2}, slow)
	if err == nil || !strings.Contains(err.Error(), "faster than it was read") {
		t.Errorf("it ended with %v", err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.Sys > 512<<20 {
		t.Errorf("this process has %d MiB", m.Sys>>20)
	}
}

// What a prober says of a failure is bounded where it is read.
func TestLongFailure(t *testing.T) {
	long := strings.Repeat("é", 2<<20)
	data, err := json.Marshal(map[string]string{"class": long, "error": long, "message": long, "phase": long, "traceback": long + "the end", "package": long})
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(fmt.Appendf(nil, `{"type":"failed","id":1,"failure":%s}`, data), &m.header); err != nil {
		t.Fatal(err)
	}
	if text := m.Failure.Error(); len(text) > 64<<10 || !strings.Contains(text, "the end") {
		t.Errorf("the error has %d bytes", len(text))
	}
}

// A prober that holds more than it may is ended, and that is why no answer comes.
func TestMemoryOfModels(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: it needs Linux and python3")
	}
	p, err := startProcess(exec.Command(python, "-c", "x = bytearray(300 << 20)\nwhile True: pass"), 100<<20, 10*time.Millisecond, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var memory *sandbox.MemoryError
	if _, err := p.Receive(); !errors.As(err, &memory) {
		t.Errorf("it ended with %v", err)
	}
}
