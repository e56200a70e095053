package cli

import (
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"memorymark/internal/testmachine"
)

// TestWorkerLeavesSilentConnections has a network drop what was sent on a connection
// by HTTP/2 without closing it, as a restarted firewall does.
func TestWorkerLeavesSilentConnections(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("a request by %s", r.Proto)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	testmachine.WriteFile(t, ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	address, silence := relay(t, s.Listener.Addr().String())
	f := workerFlags{join: "https://" + address, ca: ca}
	c, err := f.client()
	if err != nil {
		t.Fatal(err)
	}
	leave := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return c.Leave(ctx, "w")
	}
	if err := leave(time.Minute); err != nil {
		t.Fatal(err)
	}
	silence()
	for began := time.Now(); leave(15*time.Second) != nil; {
		if time.Since(began) > 30*time.Second {
			t.Fatal("it still uses the connection after 30 s")
		}
	}
}

// relay carries connections to an address. Those that were made before silence is
// called then carry nothing, and stay open.
func relay(t *testing.T, to string) (address string, silence func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var silences atomic.Int64
	carry := func(to io.WriteCloser, from io.Reader, made int64) {
		defer to.Close()
		data := make([]byte, 64<<10)
		for {
			n, err := from.Read(data)
			if err != nil {
				return
			}
			if silences.Load() != made {
				continue
			}
			if _, err := to.Write(data[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			made := silences.Load()
			go carry(far, near, made)
			go carry(near, far, made)
		}
	}()
	return l.Addr().String(), func() { silences.Add(1) }
}
