package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/admission"
	"memorymark/internal/testmachine"
	"memorymark/internal/token"
)

// Each test here is a line of docs/security.md, and the other way round.
func TestThreatModelIsTested(t *testing.T) {
	doc := testmachine.ReadFile(t, "../../docs/security.md")
	named := regexp.MustCompile("`([a-z]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(doc), -1)
	if len(named) < 20 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, match := range named {
		var files []string
		for _, where := range []string{"../", "../../", "../../scripts/"} {
			found, err := filepath.Glob(where + match[1] + "/*_test.go")
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			source, err := os.ReadFile(file)
			return err == nil && bytes.Contains(source, []byte("func "+match[2]+"("))
		}) {
			t.Errorf("docs/security.md names %s.%s, which is not there", match[1], match[2])
		}
	}
	source := testmachine.ReadFile(t, "security_test.go")
	for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllSubmatch(source, -1) {
		if !bytes.Contains(doc, append([]byte("server."), match[1]...)) && string(match[1]) != "TestThreatModelIsTested" {
			t.Errorf("docs/security.md does not name %s", match[1])
		}
	}
}

// guarded is a server that asks for tokens, and one of each role.
func guarded(t *testing.T, change ...func(*Options)) (c *client, user, worker string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.json")
	list, err := token.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	secrets := make(map[token.Role]string)
	for _, role := range token.Roles {
		if secrets[role], err = list.Create(string(role), role, time.Now(), time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	keeper, err := token.NewKeeper(path)
	if err != nil {
		t.Fatal(err)
	}
	c = start(t, append(change, func(o *Options) { o.Tokens = keeper })...)
	c.tokens = path
	return c, secrets[token.User], secrets[token.Worker]
}

// routes lists every route with something in place of its parameters.
func routes(t *testing.T, c *client) (out [][2]string) {
	t.Helper()
	doc := into[struct {
		Paths map[string]map[string]any
	}](t, c.get("/openapi.json"), http.StatusOK)
	for path, methods := range doc.Paths {
		path = strings.NewReplacer("{id}", strings.Repeat("0", 64), "{job}", strings.Repeat("0", 64)).Replace(path)
		for method := range methods {
			out = append(out, [2]string{strings.ToUpper(method), path})
		}
	}
	return append(out, [2]string{"GET", "/models"}, [2]string{"POST", "/analyze"}, [2]string{"GET", "/metrics"},
		[2]string{"GET", "/v1/snapshots/" + strings.Repeat("0", 64) + "/file"})
}

func TestEveryRouteNeedsAToken(t *testing.T) {
	c, user, _ := guarded(t)
	all := routes(t, c)
	if len(all) < 25 {
		t.Fatalf("only %d routes", len(all))
	}
	for _, route := range all {
		if route[1] == "/v1/session" {
			continue // where a token is shown
		}
		forbidden := isMember(route)
		for _, header := range [][]string{nil, {"Authorization", "Bearer mm_wrong"}, {"Authorization", user}, {"Cookie", "memorymark_session=x"}, {"Cookie", "memorymark_session=" + user}} {
			r := c.do(route[0], route[1], "{}", header...)
			if r.StatusCode != http.StatusUnauthorized || r.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s with %q: %s", route[0], route[1], header, r.Status)
			}
		}
		if r := c.do(route[0], route[1], "{}", "Authorization", "Bearer "+user); r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden != forbidden {
			t.Errorf("%s %s with a token: %s", route[0], route[1], r.Status)
		}
	}
	for _, open := range []string{"/health", "/ready", "/docs", "/openapi.json", "/"} {
		if r := c.get(open); r.StatusCode == http.StatusUnauthorized {
			t.Errorf("%s: %s", open, r.Status)
		}
	}
}

// isMember reports whether a route is a worker's.
func isMember(route [2]string) bool {
	id := strings.Repeat("0", 64)
	for pattern, p := range policies {
		if p.access == workers && strings.NewReplacer("{id}", id, "{job}", id).Replace(pattern) == route[0]+" "+route[1] {
			return true
		}
	}
	return false
}

func TestWorkerTokenOnlyWorks(t *testing.T) {
	c, _, worker := guarded(t)
	for _, route := range routes(t, c) {
		if route[1] == "/v1/session" {
			continue
		}
		r := c.do(route[0], route[1], "{}", "Authorization", "Bearer "+worker, "Content-Type", "application/json")
		refused := r.StatusCode == http.StatusForbidden && strings.Contains(r.text, "this token is a worker's")
		if may := isMember(route) || route == [2]string{"POST", "/v1/snapshots"}; may == refused {
			t.Errorf("%s %s: %s %s", route[0], route[1], r.Status, r.text)
		}
	}
	if r := c.post("/v1/session", `{"token":"`+worker+`"}`); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a worker logs the page in: %s", r.Status)
	}
}

func TestSessionCookie(t *testing.T) {
	c, user, _ := guarded(t, func(o *Options) { o.TLS = true })
	r := c.post("/v1/session", `{"token":"`+user+`"}`)
	cookies := r.Cookies()
	if r.StatusCode != http.StatusNoContent || len(cookies) != 1 {
		t.Fatalf("%s: %v", r.Status, cookies)
	}
	if k := cookies[0]; !k.HttpOnly || !k.Secure || k.SameSite != http.SameSiteStrictMode {
		t.Errorf("%+v", k)
	}
	if r := c.get("/v1/models", "Cookie", cookies[0].Name+"="+cookies[0].Value); r.StatusCode != http.StatusOK {
		t.Errorf("with the cookie: %s", r.Status)
	}
	if r := c.post("/v1/session", `{"token":"mm_wrong"}`); r.StatusCode != http.StatusUnauthorized || len(r.Cookies()) != 0 {
		t.Errorf("with a wrong token: %s", r.Status)
	}
	if out := c.do(http.MethodDelete, "/v1/session", "").Cookies(); len(out) != 1 || out[0].MaxAge >= 0 {
		t.Errorf("logging out: %+v", out)
	}
}

func TestSecretsAreNotLogged(t *testing.T) {
	var log bytes.Buffer
	c, user, _ := guarded(t, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	c.get("/v1/models", "Authorization", "Bearer "+user)
	c.post("/v1/session", `{"token":"`+user+`"}`)
	c.get("/v1/models", "Cookie", "memorymark_session="+user)
	c.get("/v1/models%0Aforged=line")
	c.close()
	if text := log.String(); strings.Contains(text, user) || !strings.Contains(text, `"token":"user"`) || strings.Contains(text, "\nforged") {
		t.Error(text)
	}
}

func TestForeignHost(t *testing.T) {
	c := start(t, func(o *Options) { o.Hosts = []string{"localhost", "127.0.0.1", "::1"} })
	for host, status := range map[string]int{
		"localhost": 200, "127.0.0.1:5001": 200, "[::1]:5001": 200, "LOCALHOST:80": 200,
		"evil.example": 421, "localhost.evil.example:5001": 421, "127.0.0.1.nip.io": 421,
	} {
		if r := c.get("/health", "Host", host); r.StatusCode != status {
			t.Errorf("%s: %s, want %d", host, r.Status, status)
		}
	}
}

func TestForeignOrigin(t *testing.T) {
	c := start(t)
	body := `{"model":"resnet-18"}`
	for _, header := range [][]string{
		{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
	} {
		r := c.post("/v1/predictions", body, header...)
		if r.StatusCode != http.StatusForbidden || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: %s", header, r.Status)
		}
	}
	if r := c.get("/v1/models", "Origin", "https://evil.example"); r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a foreign page may read: %v", r.Header)
	}
	if r := c.post("/v1/predictions", body, "Origin", c.base, "Sec-Fetch-Site", "same-origin"); r.StatusCode != http.StatusOK {
		t.Errorf("the own page: %s", r.Status)
	}
}

func TestAllowedOrigin(t *testing.T) {
	c := start(t, func(o *Options) { o.Origins = []string{"https://lab.example"} })
	preflight := c.do(http.MethodOptions, "/analyze", "", "Origin", "https://lab.example",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
	if preflight.StatusCode != http.StatusNoContent || preflight.Header.Get("Access-Control-Allow-Origin") != "https://lab.example" ||
		!strings.Contains(preflight.Header.Get("Access-Control-Allow-Headers"), "content-type") {
		t.Errorf("%s: %v", preflight.Status, preflight.Header)
	}
	if r := c.post("/v1/predictions", `{"model":"resnet-18"}`, "Origin", "https://lab.example", "Sec-Fetch-Site", "cross-site"); r.StatusCode != http.StatusOK ||
		r.Header.Get("Access-Control-Allow-Origin") != "https://lab.example" {
		t.Errorf("%s: %v", r.Status, r.Header)
	}
	if r := c.post("/v1/predictions", `{"model":"resnet-18"}`, "Origin", "https://evil.example"); r.StatusCode != http.StatusForbidden {
		t.Errorf("another origin: %s", r.Status)
	}
	anyOrigin := start(t, func(o *Options) { o.Origins = []string{"*"} })
	if r := anyOrigin.post("/v1/predictions", `{"model":"resnet-18"}`, "Origin", "https://any.example"); r.StatusCode != http.StatusOK ||
		r.Header.Get("Access-Control-Allow-Origin") != "*" || r.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("with *: %s %v", r.Status, r.Header)
	}
}

func TestPagesAreNoWorkers(t *testing.T) {
	c := start(t)
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}} {
		r := c.post("/v1/workers", `{"cards":[{"id":"t4"}]}`, header...)
		if r.StatusCode != http.StatusForbidden || len(c.s.opts.Jobs.Workers()) != 0 {
			t.Errorf("%q: %s", header, r.Status)
		}
	}
}

func TestBrowserHeaders(t *testing.T) {
	for _, path := range []string{"/", "/docs", "/v1/models", "/nowhere"} {
		h := start(t).get(path, "Accept", "text/html").Header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'self'") || h.Get("X-Request-Id") == "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestConnectionLimits(t *testing.T) {
	h := newServer(t).httpServer()
	if h.ReadHeaderTimeout <= 0 || h.IdleTimeout <= 0 || h.MaxHeaderBytes <= 0 || h.HTTP2.MaxConcurrentStreams <= 0 || h.HTTP2.WriteByteTimeout <= 0 {
		t.Errorf("%+v", h)
	}
	c := start(t)
	if r := c.post("/v1/predictions", `{"id":"`+strings.Repeat("x", 1<<20)+`"}`); r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %s", r.Status)
	}
	deep := `{"model":"bert","config":` + strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000) + `}`
	if r := c.post("/v1/predictions", deep); r.StatusCode < 400 || r.StatusCode >= 500 {
		t.Errorf("a deep body: %s", r.Status)
	}
	if r := c.get("/health"); r.StatusCode != http.StatusOK {
		t.Errorf("after that: %s", r.Status)
	}
}

func TestRateLimit(t *testing.T) {
	c := start(t, func(o *Options) { o.Rate = 3 })
	var last reply
	for range 5 {
		last = c.get("/v1/models")
	}
	if last.StatusCode != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" {
		t.Errorf("%s: %v", last.Status, last.Header)
	}
	// Headers that a client can write do not make it another client.
	if r := c.get("/v1/models", "X-Forwarded-For", "10.1.2.3", "X-Real-IP", "10.1.2.3"); r.StatusCode != http.StatusTooManyRequests {
		t.Errorf("with a made-up address: %s", r.Status)
	}
	for _, path := range []string{"/health", "/ready"} { // monitors are not kept out
		if r := c.get(path); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
}

// What is too much is refused with when to ask again, and noted as a refusal.
func TestComputingIsBounded(t *testing.T) {
	var log bytes.Buffer
	c := start(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	c.s.compute.long = admission.New(admission.Capacity{Slots: 2, PerClient: 1})
	fill(t, c.s.compute.long)
	for path, body := range map[string]string{
		"/v1/fits": small, "/v1/comparisons/cards": `{"workload":` + small + `}`, "/v1/plans": `{"workload":` + small + `}`,
		"/v1/reports": `{}`, "/v1/sweeps": `{"axes":[{"key":"model","values":["unknown"]}]}`, // each cell of a grid reads the whole workload
	} {
		if path == "/v1/fits" {
			body = `{"workload":` + body + `}`
		}
		r := c.post(path, body)
		if got := into[huma.ErrorModel](t, r, http.StatusServiceUnavailable); r.Header.Get("Retry-After") == "" || got.Detail == "" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	into[map[string]any](t, c.post("/v1/predictions", small), http.StatusOK)
	c.close() // which is when the log is whole
	if text := log.String(); strings.Contains(text, "level=ERROR") || !strings.Contains(text, `level=WARN msg="request refused"`) {
		t.Error(text)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	c := start(t)
	a := c.begin(`{"workload":` + small + `}`)
	c.s.gates[ordinary] = admission.New(admission.Capacity{Slots: 2, PerClient: 1})
	release := fill(t, c.s.gates[ordinary])
	if r := c.get("/v1/models"); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %s", r.Status)
	}
	for _, path := range []string{"/health", "/ready"} { // by which others see that it is well
		if r := c.get(path); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	release()
	for range 3 { // those that ended do not count
		if r := c.get("/v1/models"); r.StatusCode != http.StatusOK {
			t.Errorf("the only one: %s", r.Status)
		}
	}
	stream, err := http.Get(c.base + "/v1/analyses/" + a.ID + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if r := c.get("/v1/models"); r.StatusCode != http.StatusOK {
		t.Errorf("beside a stream: %s", r.Status)
	}
}

func TestNoPathReachesFiles(t *testing.T) {
	folder := t.TempDir()
	testmachine.WriteFile(t, filepath.Join(folder, "config.json"), `{"model_type":"bert"}`)
	c := start(t, func(o *Options) {
		o.Page = fstest.MapFS{"index.html": {Data: []byte("the page")}, "assets/a.js": {Data: []byte("js")}, "assets/a.js.br": {Data: []byte("packed")}}
	})
	for _, model := range []string{folder, folder + "/config.json", "../../etc/passwd", "file:///etc/passwd"} {
		r := c.post("/v1/predictions", fmt.Sprintf(`{"model":%q}`, model))
		if got := into[huma.ErrorModel](t, r, http.StatusUnprocessableEntity); got.Errors[0].Location != "body.model" {
			t.Errorf("%s: %+v", model, got)
		}
	}
	for _, path := range []string{"/../server_test.go", "/..%2f..%2fgo.mod", "/assets/..%2f..%2fgo.mod", "//etc/passwd", "/.keep", "/%2e%2e/go.mod"} {
		if r := c.get(path); r.StatusCode == http.StatusOK && r.text != "the page" {
			t.Errorf("%s: %s", path, r.text)
		}
	}
	for _, id := range []string{"..%2f..%2fetc%2fpasswd", "..", "x"} {
		if r := c.get("/v1/snapshots/" + id + "/top"); r.StatusCode == http.StatusOK {
			t.Errorf("snapshot %s: %s", id, r.text)
		}
		if r := c.get("/v1/snapshots/" + id + "/file"); r.StatusCode == http.StatusOK && r.text != "the page" {
			t.Errorf("file %s: %s", id, r.text)
		}
	}
	for accepts, want := range map[string]string{"gzip, br": "br", "gzip, brilliant": ""} {
		if r := c.do("GET", "/assets/a.js", "", "Accept-Encoding", accepts); r.Header.Get("Content-Encoding") != want || (r.text == "packed") != (want == "br") {
			t.Errorf("to a client that reads %s: %q, %v", accepts, r.text, r.Header)
		}
	}
	if r := c.get("/assets/a.js"); r.text != "js" || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("the page's own file: %s", r.text)
	}
}

func TestNoUserCode(t *testing.T) {
	c := start(t)
	for _, model := range []string{"train.py:make", "train.py", "os:system"} {
		for path, body := range map[string]string{
			"/v1/predictions": `{"model":%q}`, "/v1/activations": `{"model":%q}`,
			"/v1/predictions/analysis": `{"engine":"measured","workload":{"model":%q}}`, "/v1/analyses": `{"engine":"measured","workload":{"model":%q}}`,
			"/v1/sweeps": `{"axes":[{"key":"model","values":[%q]}]}`, "/v1/reports": `{"models":[%q]}`,
		} {
			into[huma.ErrorModel](t, c.post(path, fmt.Sprintf(body, model)), http.StatusUnprocessableEntity)
		}
		into[legacyError](t, c.post("/analyze", fmt.Sprintf(`{"model_name":%q}`, model)), http.StatusBadRequest)
	}
}
