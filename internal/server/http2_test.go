package server

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"regexp"
	"testing"
	"time"
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

// Five connections with a closed window keep nobody out, and what they asked for
// is given up.
func TestClosedWindows(t *testing.T) {
	s := newServer(t)
	s.stall, s.mostInside = 500*time.Millisecond, 8
	h := s.httpServer()
	h.Protocols = new(http.Protocols)
	h.Protocols.SetHTTP1(true)
	h.Protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.Serve(l) }()
	t.Cleanup(func() { _ = h.Close() })
	c := &client{t: t, base: "http://" + l.Addr().String(), http: &http.Client{Timeout: 10 * time.Second}, s: s}
	for range 5 {
		closedWindow(t, l.Addr().String(), "/v1/models")
	}
	waitInFlight(t, c, func(n string) bool { return len(n) > 1 && n != "1" }) // tens of them wait
	begin := time.Now()
	for _, path := range []string{"/health", "/ready", "/v1/gpus", "/v1/models"} {
		if r := c.get(path); r.StatusCode != http.StatusOK {
			t.Errorf("%s beside closed windows: %s", path, r.Status)
		}
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("others wait for %v", took)
	}
	waitInFlight(t, c, func(n string) bool { return n == "1" }) // the one that asks
}

// waitInFlight waits until the number of requests that are under way is right.
func waitInFlight(t *testing.T, c *client, right func(string) bool) {
	t.Helper()
	pattern := regexp.MustCompile(`(?m)^\S*in_flight\S* (\d+)$`)
	var found [][]byte
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		found = pattern.FindSubmatch([]byte(c.get("/metrics").text))
		if len(found) == 2 && right(string(found[1])) {
			return
		}
	}
	t.Errorf("requests under way: %s", found)
}
