package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"memorymark/internal/token"
)

// logIn begins a session and returns its cookie.
func logIn(t *testing.T, c *client, secret string) string {
	t.Helper()
	r := c.post("/v1/session", `{"token":"`+secret+`"}`)
	if r.StatusCode != http.StatusNoContent || len(r.Cookies()) != 1 {
		t.Fatalf("%s: %v", r.Status, r.Cookies())
	}
	return r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
}

// The cookie is a session's: it does not tell the token, and who copied it has
// nothing after it has ended.
func TestSessions(t *testing.T) {
	c, user, _ := guarded(t)
	cookie, other := logIn(t, c, user), logIn(t, c, user)
	if strings.Contains(cookie, user) || strings.Contains(cookie, strings.TrimPrefix(user, "mm_")) || cookie == other {
		t.Errorf("the cookies are %s and %s", cookie, other)
	}
	status := func(cookie string) int { return c.get("/v1/models", "Cookie", cookie).StatusCode }
	if status(cookie) != http.StatusOK || status(other) != http.StatusOK {
		t.Error("a session does not open")
	}
	c.do(http.MethodDelete, "/v1/session", "", "Cookie", cookie)
	if status(cookie) != http.StatusUnauthorized || status(other) != http.StatusOK {
		t.Errorf("after logging out it is %d, and another %d", status(cookie), status(other))
	}
	c.s.sessions.now = func() time.Time { return time.Now().Add(sessionTime) }
	if status(other) != http.StatusUnauthorized {
		t.Errorf("after it has expired: %d", status(other))
	}
}

// One token has a bounded number of sessions; the oldest ends.
func TestSessionsAreBounded(t *testing.T) {
	s := newSessions()
	now := time.Now()
	s.now = func() time.Time { return now }
	bystander := s.begin(token.Token{Hash: "b"})
	first := s.begin(token.Token{Hash: "a"})
	for range maxSessionsEach {
		now = now.Add(time.Second)
		s.begin(token.Token{Hash: "a"})
	}
	_, oldest := s.find(first)
	_, others := s.find(bystander)
	if oldest || !others || len(s.byID) != maxSessionsEach+1 {
		t.Errorf("of %d sessions, the oldest is there: %v, another's: %v", len(s.byID), oldest, others)
	}
}

// What a token let in ends after it was deleted, which is looked after several
// times in a second: streams, answers that are waited for, uploads. So does what
// a session let in.
func TestRevokedTokensConnectionsEnd(t *testing.T) {
	if endRevokedEvery > time.Second/2 {
		t.Errorf("a token can be of use for %v", endRevokedEvery)
	}
	for name, begin := range map[string]func(c *client, analysis string, header ...string) error{
		"a stream of events": func(c *client, analysis string, header ...string) error {
			return lasting(c, http.MethodGet, "/v1/analyses/"+analysis+"/events", nil, header...)
		},
		"an answer that is waited for": func(c *client, _ string, header ...string) error {
			return lasting(c, http.MethodPost, "/analyze", strings.NewReader(`{"model_name":"bert"}`), header...)
		},
		"an upload": standing,
	} {
		for _, how := range []string{"token", "session"} {
			t.Run(name+" by "+how, func(t *testing.T) {
				c, user, _ := guarded(t)
				c.t = t
				header := []string{"Authorization", "Bearer " + user}
				if how == "session" {
					header = []string{"Cookie", logIn(t, c, user)}
				}
				analysis := c.begin(`{"workload":`+small+`}`, header...).ID
				ended := make(chan error, 1)
				go func() { ended <- begin(c, analysis, header...) }()
				for !c.s.opened.any() {
					time.Sleep(time.Millisecond)
				}
				select {
				case err := <-ended:
					t.Fatalf("it ended by itself: %v", err)
				case <-time.After(2 * endRevokedEvery):
				}
				if how == "session" {
					c.do(http.MethodDelete, "/v1/session", "", header...)
				} else {
					list, err := token.Open(c.tokens)
					if err != nil {
						t.Fatal(err)
					}
					if err := list.Delete(string(token.User)); err != nil {
						t.Fatal(err)
					}
				}
				select {
				case <-ended:
				case <-time.After(patience):
					t.Error("it goes on")
				}
			})
		}
	}
}

func (o *opened) any() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.requests) > 0
}

// standing begins an upload and sends nothing, until the server ends the
// connection. A client of net/http would wait for the body to end, too.
func standing(c *client, _ string, header ...string) error {
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	head := "POST /v1/snapshots HTTP/1.1\r\nHost: " + conn.RemoteAddr().String() + "\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000\r\n"
	for i := 0; i+1 < len(header); i += 2 {
		head += header[i] + ": " + header[i+1] + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// lasting asks for something and reads until it ends.
func lasting(c *client, method, path string, body io.Reader, header ...string) error {
	r, err := http.NewRequestWithContext(context.Background(), method, c.base+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
