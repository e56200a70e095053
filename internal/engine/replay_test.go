package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"memorymark/internal/measure"
	"memorymark/internal/workload"
)

// openTranscript opens a session that answers as a recorded one on a GPU did. A request that was
// not recorded is answered with a failure.
func openTranscript(ctx context.Context, transcript io.Reader, o measure.SessionOptions) (*measure.Session, error) {
	r := &replay{}
	r.spoke.L = &r.mu
	if err := r.read(transcript); err != nil {
		return nil, fmt.Errorf("read the transcript: %w", err)
	}
	return measure.OpenLink(ctx, r, o)
}

// replay answers requests from a transcript.
type replay struct {
	recorded []*exchange

	mu     sync.Mutex
	spoke  sync.Cond // something was said, or nothing will be
	said   [][]byte  // and not yet received
	closed bool
}

// exchange is a request and the messages that answered it.
type exchange struct {
	request map[string]any
	answers []map[string]any
	used    bool
}

func (r *replay) read(transcript io.Reader) error {
	byID := make(map[float64]*exchange)
	scanner := bufio.NewScanner(transcript)
	scanner.Buffer(nil, measure.MaxLine)
	for n := 1; scanner.Scan(); n++ {
		direction, line, ok := bytes.Cut(scanner.Bytes(), []byte(" "))
		var m map[string]any
		if !ok || json.Unmarshal(line, &m) != nil {
			return fmt.Errorf("line %d is not a message", n)
		}
		id, _ := m["id"].(float64)
		switch {
		case string(direction) == ">":
			e := &exchange{request: m}
			byID[id] = e
			if look, ok := m["look_id"].(float64); ok {
				byID[look] = e
			}
			r.recorded = append(r.recorded, e)
		case m["type"] == "hello" && id == 0:
			r.said = [][]byte{bytes.Clone(line)} // the prober says it once
		case byID[id] != nil:
			byID[id].answers = append(byID[id].answers, m)
		}
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	if len(r.said) == 0 {
		return errors.New("it does not begin with the prober's hello")
	}
	return nil
}

// Send finds the recorded request that asks the same and says its answers.
func (r *replay) Send(line []byte) error {
	var asked map[string]any
	if err := json.Unmarshal(line, &asked); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return io.ErrClosedPipe
	}
	answered := make(map[any]bool)
	if e := r.find(asked); e != nil {
		for _, answer := range e.answers {
			id := renumber(answer["id"], e.request, asked)
			r.say(answer, id)
			answered[id] = answered[id] || answer["type"] != "started" && answer["type"] != "step"
		}
	}
	for _, key := range []string{"id", "look_id"} {
		if id, ok := asked[key]; ok && !answered[id] && asked["type"] != "cancel" {
			r.say(map[string]any{"type": "failed", "failure": map[string]any{
				"class": measure.Other, "message": fmt.Sprintf("the transcript has no answer to %s", line),
			}}, id)
		}
	}
	return nil
}

func (r *replay) find(asked map[string]any) *exchange {
	var again *exchange // the same question may have been asked twice
	for _, e := range r.recorded {
		if sameQuestion(e.request, asked) {
			if !e.used {
				e.used = true
				return e
			}
			again = e
		}
	}
	return again
}

// sameQuestion compares requests but for what differs from run to run, and for
// what follows from the workload.
func sameQuestion(a, b map[string]any) bool {
	bare := func(m map[string]any) string {
		out := make(map[string]any, len(m))
		for key, value := range m {
			switch key {
			case "id", "look_id", "timeout_seconds", "record", "recipe", "module":
			case "workload":
				out[key] = withoutDefaults(value)
			default:
				out[key] = value
			}
		}
		text, _ := json.Marshal(out) //nolint:errchkjson // it came from JSON
		return string(text)
	}
	return bare(a) == bare(b)
}

// withoutDefaults leaves the keys of a workload out that say what an absent one
// means: a recording may be older than they are.
func withoutDefaults(recorded any) any {
	given, ok := recorded.(map[string]any)
	if !ok {
		return recorded
	}
	out := maps.Clone(given)
	for _, key := range workload.Keys() {
		if value, ok := out[key.Name]; ok && fmt.Sprint(value) == fmt.Sprint(key.Initial()) {
			delete(out, key.Name)
		}
	}
	return out
}

// renumber is the id under which an answer is expected now.
func renumber(id any, recorded, asked map[string]any) any {
	if look, ok := recorded["look_id"]; ok && look == id {
		return asked["look_id"]
	}
	return asked["id"]
}

func (r *replay) say(answer map[string]any, id any) {
	out := make(map[string]any, len(answer))
	for key, value := range answer {
		out[key] = value
	}
	out["id"] = id
	line, err := json.Marshal(out)
	if err == nil {
		r.said = append(r.said, line)
		r.spoke.Signal()
	}
}

// Receive implements measure.Link.
func (r *replay) Receive() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.said) == 0 && !r.closed {
		r.spoke.Wait()
	}
	if len(r.said) == 0 {
		return nil, io.EOF
	}
	line := r.said[0]
	r.said = r.said[1:]
	return line, nil
}

// Output implements measure.Link.
func (r *replay) Output() string { return "" }

// Close implements measure.Link.
func (r *replay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.spoke.Broadcast()
	return nil
}
