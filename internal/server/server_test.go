package server

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memorymark/internal/gpu"
	"memorymark/internal/job"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload/workloadtest"
)

var update = flag.Bool("update", false, "rewrite docs/openapi.json")

// patience is after how long a test that waits has failed.
const patience = 5 * time.Minute

// client talks to a server over a real connection.
type client struct {
	t    *testing.T
	base string
	http *http.Client
	s    *Server

	tokens string // the file of tokens, of a server that asks for them

	close func() // returns when every request was answered and logged
}

// start runs a server with some options.
func start(t *testing.T, change ...func(*Options)) *client {
	t.Helper()
	s := newServer(t, change...)
	h := httptest.NewServer(s)
	shut := sync.OnceFunc(func() {
		s.stop()
		h.Close()
	})
	t.Cleanup(shut)
	return &client{t: t, base: h.URL, http: &http.Client{Timeout: patience}, s: s, close: shut}
}

// newServer makes a server with a queue and no worker.
func newServer(t testing.TB, change ...func(*Options)) *Server {
	t.Helper()
	q, err := job.Open(context.Background(), job.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	store, err := snapshotstore.Open(t.TempDir(), snapshotstore.Options{MaxBytes: 8 << 20, Quota: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Version: "test", Snapshots: store, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), Jobs: q}
	for _, c := range change {
		c(&opts)
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	text string
}

func (c *client) do(method, path, body string, header ...string) reply {
	c.t.Helper()
	r, err := http.NewRequest(method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply{answer, string(data)}
}

func (c *client) get(path string, header ...string) reply {
	c.t.Helper()
	return c.do(http.MethodGet, path, "", header...)
}

func (c *client) post(path, body string, header ...string) reply {
	c.t.Helper()
	return c.do(http.MethodPost, path, body, append([]string{"Content-Type", "application/json"}, header...)...)
}

// into decodes an answer that must have a status.
func into[T any](t *testing.T, r reply, status int) T {
	t.Helper()
	var v T
	if r.StatusCode != status {
		t.Fatalf("%s %s: %s: %s", r.Request.Method, r.Request.URL.Path, r.Status, r.text)
	}
	if err := json.Unmarshal([]byte(r.text), &v); err != nil {
		t.Fatalf("%s: %v in %s", r.Request.URL.Path, err, r.text)
	}
	return v
}

// card gives the server a card of its own.
func card(t *testing.T, id string) func(*Options) {
	t.Helper()
	c := workloadtest.Card(t, id)
	return func(o *Options) {
		o.Card = func(context.Context) (*gpu.Card, bool) { return c, true }
	}
}

// The API's description is part of its contract: a change must be seen in
// review. make golden rewrites it.
func TestOpenAPI(t *testing.T) {
	const golden = "../../docs/openapi.json"
	got := start(t).get("/openapi.json")
	if *update {
		testmachine.WriteFile(t, golden, got.text)
	}
	want := testmachine.ReadFile(t, golden)
	if diff := cmp.Diff(string(want), got.text); diff != "" {
		t.Errorf("make golden rewrites it:\n%s", diff)
	}
	again := start(t).get("/openapi.json", "If-None-Match", got.Header.Get("ETag"))
	if again.StatusCode != http.StatusNotModified {
		t.Errorf("the same document again: %s", again.Status)
	}
}

// The API's page needs nothing from elsewhere.
func TestDocs(t *testing.T) {
	page := start(t).get("/docs")
	if page.StatusCode != http.StatusOK || !strings.Contains(page.text, "/v1/predictions/curve") {
		t.Fatalf("%s: %s", page.Status, page.text)
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page.text, -1) {
		if target := strings.TrimSuffix(link[1], "[]"); !strings.Contains(page.text, `id="`+target+`"`) && target != "schema-file" && target != "schema-events" {
			t.Errorf("nothing is at #%s", link[1])
		}
	}
	for _, foreign := range []string{`src="http`, `href="http`, "<script", "@import"} {
		if strings.Contains(page.text, foreign) {
			t.Errorf("the page has %s", foreign)
		}
	}
}

func TestServeStops(t *testing.T) {
	s := newServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	c := &client{t: t, base: "http://" + l.Addr().String(), http: http.DefaultClient, s: s}
	for c.get("/ready").StatusCode != http.StatusOK { // the history is loaded in the background
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestMetrics(t *testing.T) {
	c := start(t)
	body := `{"model":"resnet-18","batch":2}`
	c.post("/v1/predictions", body)
	c.post("/v1/predictions", body)
	c.get("/nowhere")
	c.begin(`{"workload":` + small + `}`)
	text := c.get("/metrics").text
	for _, want := range []string{
		`memorymark_http_requests_total{route="POST /v1/predictions",status="200"} 2`,
		`memorymark_http_requests_total{route="none",status="404"} 1`,
		`memorymark_predictions_total{from="computed"} 1`,
		`memorymark_predictions_total{from="remembered"} 1`,
		`memorymark_jobs{state="queued"} 1`,
		`memorymark_jobs{state="failed"} 0`,
		`memorymark_queue_age_seconds `,
		`memorymark_snapshot_quota_bytes 3.3554432e+07`,
		`go_goroutines `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
