package job

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestEngineRefusesPages: a page in a browser of this machine may try every
// port of it.
func TestEngineRefusesPages(t *testing.T) {
	q, err := Open(context.Background(), Config{Dir: t.TempDir(), Authorize: func(string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	url := "http" + strings.TrimPrefix(q.engine.Load().server.WebsocketURL(), "ws")
	for origin, want := range map[string]int{
		"": http.StatusSwitchingProtocols, "https://evil.example": http.StatusForbidden, url: http.StatusForbidden, "null": http.StatusForbidden,
	} {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": origin,
		} {
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("a socket of %q gets %s, want %d", origin, answer.Status, want)
		}
	}
}
