package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"memorymark/internal/admission"
)

// pipes is a listener whose connections hold nothing: what one side writes
// waits until the other reads.
type pipes struct{ ends chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.ends; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p.ends); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(t *testing.T) net.Conn {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	p.ends <- theirs
	return ours
}

// startOnPipes starts a server that waits so long for clients that stand still,
// and answers one request at a time. It says when it closes a connection.
func startOnPipes(t *testing.T, stall time.Duration) (p pipes, closed <-chan struct{}) {
	s := newServer(t)
	s.stall = stall
	s.gates[ordinary] = admission.New(admission.Capacity{Slots: 1})
	p = pipes{make(chan net.Conn)}
	h := s.httpServer()
	closing := make(chan struct{}, 10)
	h.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closing <- struct{}{}
		}
	}
	go func() { _ = h.Serve(p) }()
	t.Cleanup(func() { _ = h.Close() })
	return p, closing
}

func ask(t *testing.T, c net.Conn, path string) (*http.Response, error) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return http.ReadResponse(bufio.NewReader(c), nil)
}

// Clients that do not read shut no client out.
func TestSlowReaders(t *testing.T) {
	p, _ := startOnPipes(t, patience)
	slow := p.dial(t)
	if _, err := fmt.Fprint(slow, largeAnswer); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(slow, make([]byte, 8)); err != nil { // it answers, and then waits for us
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/gpus", "/health"} {
		r, err := ask(t, p.dial(t), path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s beside a client that does not read: %s", path, r.Status)
		}
	}
}

const largeAnswer = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"

// Clients that do not read are given up.
func TestReadersThatStandStill(t *testing.T) {
	p, closed := startOnPipes(t, 200*time.Millisecond)
	slow := p.dial(t)
	if _, err := fmt.Fprint(slow, largeAnswer); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("it is waited for")
	}
	if rest, err := io.ReadAll(slow); err != nil || len(rest) > 0 {
		t.Errorf("after standing still, it gets %d bytes, %v", len(rest), err)
	}
}

// An upload must keep coming, by more than a byte now and then.
func TestSlowUploads(t *testing.T) {
	p, _ := startOnPipes(t, time.Second)
	c := p.dial(t)
	if _, err := fmt.Fprint(c, "POST /v1/snapshots HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan *http.Response, 1)
	go func() {
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Error(err)
		} else {
			defer r.Body.Close()
		}
		answered <- r
	}()
	for begin := time.Now(); ; {
		select {
		case r := <-answered:
			if r == nil || r.StatusCode != http.StatusBadRequest {
				t.Errorf("%+v", r)
			}
			return
		default:
		}
		if time.Since(begin) > patience {
			t.Fatal("it is waited for")
		}
		if _, err := c.Write([]byte{0}); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A question must come, also where its answer lasts.
func TestSlowQuestions(t *testing.T) {
	for _, path := range []string{"/analyze", "/v1/predictions", "/v1/analyses"} {
		p, closed := startOnPipes(t, 200*time.Millisecond)
		c := p.dial(t)
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", path); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(path, ": ", err)
		}
		_ = r.Body.Close()
		if r.StatusCode < 400 || r.StatusCode >= 500 {
			t.Errorf("%s: %s", path, r.Status)
		}
		_ = c.Close()
		<-closed
	}
}

// A client that leaves before the end of its request is not an error of the server:
// no client can fill the log that way.
func TestClientLeaves(t *testing.T) {
	var log bytes.Buffer
	c := start(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, "POST /v1/predictions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for !strings.Contains(c.get("/metrics").text, `status="499"`) && !strings.Contains(c.get("/metrics").text, `status="500"`) {
		time.Sleep(10 * time.Millisecond)
	}
	c.close() // which is when the log is whole
	if text := log.String(); !strings.Contains(text, "status=499") || strings.Contains(text, "level=ERROR") {
		t.Error(text)
	}
}
