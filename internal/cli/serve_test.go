package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/predict"
	"memorymark/internal/testmachine"
)

// serve runs memorymark serve in this process and returns its address. The
// server stops with the test.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	return address(t, append([]string{"serve", "--json", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, args...)...)
}

// address runs a command that serves, and returns the address it tells.
func address(t *testing.T, args ...string) string {
	t.Helper()
	var said serving
	background(t, &said, args...)
	return said.URL
}

// TestDataFolderIsOneServers starts a second server on the folder of one that
// runs, which is refused, and then one on a folder that was left.
func TestDataFolderIsOneServers(t *testing.T) {
	data := t.TempDir()
	t.Run("two at once", func(t *testing.T) {
		url := address(t, "serve", "--json", "--listen", "127.0.0.1:0", "--data", data, "--no-measuring")
		var stderr bytes.Buffer
		code := Run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--data", data}, strings.NewReader(""), io.Discard, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), "a server uses this folder (process ") || !strings.Contains(stderr.String(), url) {
			t.Errorf("%d: %s", code, &stderr)
		}
	})
	address(t, "serve", "--json", "--listen", "127.0.0.1:0", "--data", data, "--no-measuring")
}

// background runs a command that lasts, until the test ends, and reads what it
// tells when it is ready. It returns what is closed when the command has ended.
func background(t *testing.T, told any, args ...string) (ended <-chan struct{}) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	var log bytes.Buffer
	code, done := exitOK, make(chan struct{})
	go func() {
		defer close(done)
		defer in.Close() // one that fails tells nothing, and is not waited for
		code = Run(ctx, args, strings.NewReader(""), in, &log)
	}()
	t.Cleanup(func() {
		stop()
		if <-done; code != exitOK {
			t.Errorf("%s ended with %d: %s", args[0], code, log.String())
		}
	})
	if err := json.NewDecoder(out).Decode(told); err != nil {
		t.Fatalf("%s told nothing: %v", args[0], err)
	}
	return done
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %s", url, r.Status, err, data)
	}
	return string(data)
}

func TestServe(t *testing.T) {
	url := serve(t, "--log-json")
	if text := fetch(t, url+"/health"); !strings.Contains(text, `"status":"healthy"`) {
		t.Error(text)
	}
	if text := fetch(t, url+"/v1/models"); !strings.Contains(text, `"id":"bert"`) {
		t.Error(text)
	}
}

// An analysis goes through the queue and is still there after a restart.
func TestServeAnalyses(t *testing.T) {
	data := t.TempDir()
	var answer struct {
		Status string
		Data   struct {
			Batch int64 `json:"optimal_batch_size"`
		}
	}
	t.Run("first", func(t *testing.T) {
		url := serve(t, "--data", data)
		r, err := http.Post(url+"/analyze", "application/json", strings.NewReader(`{"model_name":"resnet-18"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Status != "success" || answer.Data.Batch == 0 {
			t.Fatalf("%+v, %v", answer, err)
		}
		if text := fetch(t, url+"/v1/workers"); !strings.Contains(text, `"name":"predictions"`) {
			t.Error(text)
		}
	})
	t.Run("second", func(t *testing.T) {
		url := serve(t, "--data", data)
		text := fetch(t, url+"/v1/analyses?model=resnet-18&state=succeeded")
		if !strings.Contains(text, `"total":1`) {
			t.Error(text)
		}
	})
}

// A study through the API is that of the command line, byte by byte.
func TestServeStudies(t *testing.T) {
	url, folder := serve(t, "--no-measuring"), t.TempDir()
	var said, stderr bytes.Buffer
	for _, args := range [][]string{
		{"sweep", "--json", "--engine", "predicted", "--model", "lm-small", "--context-length", "64,128", "--profile-type", "training", "--precision", "fp32", "--gpu", "t4"},
		{"report", "--engine", "predicted", "--model-size", "small", "--context-length", "64", "--gpu", "t4", "--output", folder},
	} {
		stdout := &said
		if args[0] == "report" {
			stdout = new(bytes.Buffer)
		}
		if code := Run(t.Context(), args, strings.NewReader(""), stdout, &stderr); code != exitOK {
			t.Fatalf("%d: %s", code, stderr.String())
		}
	}
	r := send(t, url+"/v1/sweeps", "application/json", `{"axes":[{"key":"model","values":["lm-small"]},{"key":"sequence","values":[64,128]},
		{"key":"phase","values":["train"]},{"key":"precision","values":["fp32"]},{"key":"batch","values":[4]},{"key":"gpu","values":["t4"]}]}`)
	var want, got any
	if err := errors.Join(json.Unmarshal(said.Bytes(), &want), json.Unmarshal(r, &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the sweep: %s", diff)
	}
	data := send(t, url+"/v1/reports", "application/zip", `{"models":["lm-small"],"sequences":[64],"gpu":"t4"}`)
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != len(archive.File)+1 { // the journal
		t.Errorf("%d files on the disk, %d in the archive, %v", len(files), len(archive.File), err)
	}
	for _, f := range archive.File {
		here, err := os.ReadFile(filepath.Join(folder, f.Name))
		there, err2 := fs.ReadFile(archive, f.Name)
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(here, there) {
			t.Errorf("%s: %d bytes on the disk, %d in the archive, %v", f.Name, len(here), len(there), err)
		}
	}
}

// send posts JSON and returns the answer.
func send(t *testing.T, url, accept, body string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %s", url, answer.Status, err, data)
	}
	return data
}

// Beyond loopback the server asks for a token, and does not start without one.
// Beyond loopback an address may not ask as often as it likes.
func TestStrangersAreLimited(t *testing.T) {
	data := t.TempDir()
	if code := Run(context.Background(), []string{"token", "create", "me", "--data", data}, strings.NewReader(""), io.Discard, io.Discard); code != exitOK {
		t.Fatal(code)
	}
	for listen, want := range map[string]int{"127.0.0.1:0": 0, "0.0.0.0:0": 1200} {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		o, err := (&serveFlags{listen: listen, data: data}).options(l, slog.New(slog.DiscardHandler))
		if err != nil || o.Rate != want {
			t.Errorf("%s: %d a minute, %v; want %d", listen, o.Rate, err, want)
		}
	}
}

func TestServeNeedsTokens(t *testing.T) {
	data := t.TempDir()
	var stderr bytes.Buffer
	code := Run(context.Background(), []string{"serve", "--listen", "0.0.0.0:0", "--data", data}, strings.NewReader(""), io.Discard, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), "memorymark serve token create") {
		t.Fatalf("%d: %s", code, stderr.String())
	}
	var secret bytes.Buffer
	if code := Run(context.Background(), []string{"token", "create", "me", "--data", data}, strings.NewReader(""), &secret, &stderr); code != exitOK {
		t.Fatal(stderr.String())
	}
	url := serve(t, "--data", data, "--listen", "0.0.0.0:0")
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://["), "]:")
	if port == "" {
		_, port, _ = strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	}
	for header, status := range map[string]int{"": http.StatusUnauthorized, "Bearer " + strings.TrimSpace(secret.String()): http.StatusOK} {
		r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+port+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", header)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != status {
			t.Errorf("with %q: %s", header, answer.Status)
		}
	}
	if def := newServe(&env{}).Flags().Lookup("listen").DefValue; !strings.HasPrefix(def, "127.0.0.1:") {
		t.Errorf("it listens on %s", def)
	}
}

func TestServeTLS(t *testing.T) {
	folder := t.TempDir()
	cert, key := writeCertificate(t, folder)
	url := serve(t, "--tls-cert", cert, "--tls-key", key)
	pool := x509.NewCertPool()
	data, err := os.ReadFile(cert)
	if err != nil || !pool.AppendCertsFromPEM(data) {
		t.Fatal(err)
	}
	for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: version, MaxVersion: version}}}
		r, err := c.Get(url + "/health")
		if (err == nil) != ok {
			t.Errorf("TLS %x: %v", version, err)
		}
		if err == nil {
			r.Body.Close()
		}
		c.CloseIdleConnections()
	}
}

// writeCertificate writes a certificate for this machine and its key.
func writeCertificate(t *testing.T, folder string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		testmachine.WriteFile(t, file, pem.EncodeToMemory(block))
	}
	return cert, key
}

func TestSnapshotView(t *testing.T) {
	file := "../../testdata/truth/snapshots/gpt2_oom.pickle.xz"
	address, err := url.Parse(address(t, "snapshot", "view", file, file, "--json"))
	if err != nil {
		t.Fatal(err)
	}
	id := address.Query().Get("snapshot")
	if address.Path != "/timeline" || len(id) != 64 || address.Query().Get("with") != id || !strings.HasPrefix(address.Host, "127.0.0.1:") {
		t.Errorf("%v", address)
	}
	if text := fetch(t, "http://"+address.Host+"/v1/snapshots/"+id+"/top?at=oom"); !strings.Contains(text, "modeling_gpt2") {
		t.Error(text)
	}
	var stderr bytes.Buffer
	code := Run(context.Background(), []string{"snapshot", "view", "serve_test.go"}, strings.NewReader(""), io.Discard, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), "serve_test.go: not a readable snapshot") {
		t.Errorf("%d: %s", code, stderr.String())
	}
}

// A server whose Python has a CUDA build of PyTorch emulates predictions: what
// is modelled comes to the same bytes either way.
func TestServeEmulates(t *testing.T) {
	python := testmachine.ForkingPython(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("NOT TESTED: it needs a C compiler")
	}
	url := serve(t, "--python", python)
	ask := func(query, body string) (p analysis.Prediction) {
		t.Helper()
		r, err := http.Post(url+"/v1/predictions"+query, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK || json.Unmarshal(text, &p) != nil {
			t.Fatalf("%s%s: %s %s, %v", query, body, r.Status, text, err)
		}
		return p
	}
	const gpt2 = `{"gpu":"l4","sequence":16,"config":{"model_type":"gpt2","n_layer":2,"n_embd":256,"n_head":2,"vocab_size":300}`
	predicted, emulated := ask("", gpt2+`}`), ask("?engine=emulated", gpt2+`}`)
	if emulated.Engine != evidence.Emulated || !emulated.Fits || emulated.Versions == nil || !slices.Equal(emulated.Steps, predicted.Steps) || emulated.Breakdown != predicted.Breakdown {
		t.Errorf("emulated %+v, predicted %+v", emulated, predicted)
	}
	small := ask("?engine=emulated", gpt2+`,"batch":100000,"limit_gib":0.5}`)
	want := ask("", gpt2+`,"batch":100000,"limit_gib":0.5}`)
	if small.Fits || small.OutOfMemory == nil || *small.OutOfMemory != *want.OutOfMemory || small.Breakdown != (predict.Breakdown{}) || small.Failure.Traceback != "" {
		t.Errorf("emulated %+v %+v, predicted %+v", small, small.OutOfMemory, want.OutOfMemory)
	}
}
