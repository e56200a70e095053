package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// listen gives every line to who waits for it, until there are no more.
func (s *Session) listen() {
	defer close(s.done)
	for {
		line, err := s.link.Receive()
		m := message{raw: line}
		if err == nil {
			if err = json.Unmarshal(line, &m.header); err != nil {
				err = fmt.Errorf("the prober sent %.80q, which is not a message", line)
			}
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the prober ended")
		}
		if err != nil {
			s.breakOff(err)
			return
		}
		if err := s.deliver(m); err != nil {
			s.breakOff(err)
			return
		}
	}
}

// maxUnread is how many bytes of messages may wait to be read: what user code sends in
// the prober's name must not fill this process.
const maxUnread = 2 * MaxLine

// deliver never waits: whoever closes the session waits for the listener.
func (s *Session) deliver(m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.waiting[m.ID]
	if to == nil {
		return nil
	}
	if s.unread += int64(len(m.raw)); s.unread > maxUnread {
		return fmt.Errorf("the prober sent more than %d MiB faster than it was read", maxUnread>>20)
	}
	select {
	case to <- m:
		return nil
	default:
		return fmt.Errorf("the prober sent more than %d messages faster than they were read", cap(to))
	}
}

// read counts a message as read.
func (s *Session) read(m message) {
	s.mu.Lock()
	s.unread -= int64(len(m.raw))
	s.mu.Unlock()
}

// breakOff tells all requests that no more answers will come.
func (s *Session) breakOff(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
	for id, to := range s.waiting {
		delete(s.waiting, id)
		close(to)
	}
}

func (s *Session) register() (int64, chan message) {
	s.mu.Lock()
	id := s.nextID
	s.nextID++
	s.mu.Unlock()
	return id, s.expect(id)
}

// expect is where the messages for a request go. It holds all that a
// probe says before it is read.
func (s *Session) expect(id int64) chan message {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan message, 1024)
	if s.broken != nil {
		close(c)
	} else {
		s.waiting[id] = c
	}
	return c
}

func (s *Session) forget(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for from := s.waiting[id]; len(from) > 0; {
		s.unread -= int64(len((<-from).raw))
	}
	delete(s.waiting, id)
}

func (s *Session) send(r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	err = s.link.Send(line)
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	// The prober is gone, and why is worth more than that its pipe is closed.
	select {
	case <-s.done:
		return cmp.Or(s.Err(), err)
	case <-time.After(killGrace):
		return err
	}
}

// wait returns the next message for a request.
func (s *Session) wait(ctx context.Context, from chan message) (message, error) {
	select {
	case m, ok := <-from:
		if ok {
			s.read(m)
			return m, nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return message{}, s.broken
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	}
}

// receive waits for the one answer to a request.
func (s *Session) receive(ctx context.Context, from chan message, into any) error {
	for {
		m, err := s.wait(ctx, from)
		if err != nil {
			return err
		}
		if m.Type != "started" {
			return decode(m, into)
		}
	}
}

// decode reads an answer; the error of one that failed is its *Failure.
func decode(m message, into any) error {
	if m.Type == "failed" {
		if m.Failure == nil {
			return errors.New("the prober failed without giving a reason")
		}
		return m.Failure
	}
	if err := json.Unmarshal(m.raw, into); err != nil {
		return fmt.Errorf("the prober's answer: %w", err)
	}
	return nil
}

// cancel has a probe killed and waits until it is, but not for long.
func (s *Session) cancel(id int64, answers chan message) {
	if s.send(request{Type: "cancel", ID: id}) != nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), killGrace)
	defer stop()
	go func() {
		select {
		case <-s.hurry: // closing the session kills it
			stop()
		case <-ctx.Done():
		}
	}()
	for {
		if m, err := s.wait(ctx, answers); err != nil || m.Type == "result" || m.Type == "failed" {
			return
		}
	}
}

// explain adds the last that the prober printed to an error that does not say
// more by itself.
func (s *Session) explain(err error) error {
	var f *Failure
	if errors.Is(err, context.Canceled) {
		return err
	}
	text := s.link.Output()
	switch {
	case text == "":
		return err
	case errors.As(err, &f):
		if f.Traceback == "" {
			f.Output = text
		}
		return err
	default:
		return fmt.Errorf("%w; it printed:\n%s", err, text)
	}
}
