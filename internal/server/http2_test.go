package server

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"memorymark/internal/admission"
)

// frame is one of HTTP/2 (RFC 9113, section 4.1).
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := make([]byte, 9, 9+len(payload))
	binary.BigEndian.PutUint32(head, uint32(len(payload))<<8)
	head[3], head[4] = kind, flags
	binary.BigEndian.PutUint32(head[5:], stream)
	return append(head, payload...)
}

const (
	headersFrame  = 1
	settingsFrame = 4

	endStream, endHeaders = 1, 4
	initialWindowSize     = 4
)

// closedWindow opens a connection of HTTP/2 whose client takes no byte of any
// answer, and asks for as much as it may at a time.
func closedWindow(t *testing.T, address, path string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	settings := binary.BigEndian.AppendUint16(nil, initialWindowSize)
	settings = binary.BigEndian.AppendUint32(settings, 0)
	said := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(settingsFrame, 0, 0, settings)...)
	// GET and http by their numbers in the static table, then the path and the
	// authority as text (RFC 7541, section 6).
	head := append([]byte{0x82, 0x86, 0x04, byte(len(path))}, path...)
	head = append(append(head, 0x01, byte(len("localhost"))), "localhost"...)
	for i := range uint32(streams) {
		said = append(said, frame(headersFrame, endStream|endHeaders, 2*i+1, head)...)
	}
	if _, err := c.Write(said); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, c) }() // it reads frames, and there are none of data
}

// Connections with a closed window shut no client out, and what they asked for is
// given up.
func TestClosedWindows(t *testing.T) {
	const connections = 5
	for name, stall := range map[string]time.Duration{"keep nobody out": patience, "are given up": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var begun, ended atomic.Int64
			c := serveHTTP2(t, stall, &begun, &ended)
			for range connections {
				closedWindow(t, strings.TrimPrefix(c.base, "http://"), "/v1/models")
			}
			// A machine that stands still may lose a connection, and never all of them.
			waitUntil(t, func() bool { return begun.Load() >= streams })
			if stall < patience {
				waitUntil(t, func() bool { return ended.Load() == begun.Load() })
				return
			}
			waitUntil(t, func() bool { return c.get("/ready").StatusCode == http.StatusOK }) // a slow disk makes it wait, too
			for _, path := range []string{"/health", "/v1/gpus", "/v1/models"} {
				if r := c.get(path); r.StatusCode != http.StatusOK {
					t.Errorf("%s beside closed windows: %s", path, r.Status)
				}
			}
		})
	}
}

// serveHTTP2 starts a server that waits so long for clients that stand still, and
// counts the requests that it has begun to answer, and that it is done with.
func serveHTTP2(t *testing.T, stall time.Duration, begun, ended *atomic.Int64) *client {
	t.Helper()
	s := newServer(t)
	s.stall = stall
	s.gates[ordinary] = admission.New(admission.Capacity{Slots: 8, PerClient: 4})
	h := s.httpServer()
	h.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun.Add(1)
		defer ended.Add(1)
		s.ServeHTTP(w, r)
	})
	h.Protocols = new(http.Protocols)
	h.Protocols.SetHTTP1(true)
	h.Protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.Serve(l) }()
	t.Cleanup(func() { _ = h.Close() })
	return &client{t: t, base: "http://" + l.Addr().String(), http: &http.Client{Timeout: patience}, s: s}
}

// waitUntil waits until something holds.
func waitUntil(t *testing.T, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > patience {
			t.Fatal("it never happens")
		}
	}
}
