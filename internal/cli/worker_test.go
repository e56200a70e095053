package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memorymark/internal/measure"
	"memorymark/internal/sandbox"
	"memorymark/internal/testmachine"
)

// workerToken makes a worker's token in a data folder and returns a file with it.
func workerToken(t *testing.T, data string) string {
	t.Helper()
	var secret, stderr bytes.Buffer
	args := []string{"token", "create", "gpu-7", "--role", "worker", "--data", data}
	if code := Run(context.Background(), args, strings.NewReader(""), &secret, &stderr); code != exitOK {
		t.Fatal(stderr.String())
	}
	path := filepath.Join(t.TempDir(), "token")
	testmachine.WriteFile(t, path, secret.Bytes())
	return path
}

// colleague is a worker that runs.
type colleague struct {
	joined
	ended <-chan struct{}
}

// startWorker runs memorymark worker in this process until the test ends.
func startWorker(t *testing.T, args ...string) colleague {
	t.Helper()
	var c colleague
	c.ended = background(t, &c.joined, append([]string{"worker", "--json"}, args...)...)
	return c
}

// measured has a workload measured and returns the analysis when it has ended.
func measured(t *testing.T, url, question string) outcome {
	t.Helper()
	return analysed(t, url+"/v1/analyses", url, question)
}

// outcome is an analysis that has ended.
type outcome struct {
	ID, State, Reason, Worker string
	Answer                    struct {
		Engine string
		Batch  int64 `json:"optimal_batch_size"`
	}
}

// analysed begins an analysis by a route and waits for it.
func analysed(t *testing.T, route, url, question string) (a outcome) {
	t.Helper()
	r, err := http.Post(route, "application/json", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil || r.StatusCode != http.StatusAccepted {
		t.Fatalf("%s: %+v, %v", r.Status, a, err)
	}
	for deadline := time.Now().Add(patience); a.State == "queued" || a.State == "running"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never ended: %+v", a)
		}
		if err := json.Unmarshal([]byte(fetch(t, url+"/v1/analyses/"+a.ID)), &a); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// A worker joins a server through its one port, is listed, takes the jobs of
// its card, says why it cannot do one, and ends when the server drains it.
func TestWorker(t *testing.T) {
	data := t.TempDir()
	url := serve(t, "--data", data)
	noPython := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(noPython, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := startWorker(t, "--join", url, "--token-file", workerToken(t, data), "--card", "t4", "--device", "cpu", "--python", noPython, "--name", "rack-7")
	if w.Worker == "" || len(w.Cards) != 1 || w.Cards[0].ID != "t4" {
		t.Errorf("joined as %+v", w)
	}
	a := measured(t, url, `{"workload":{"model":"resnet-18","gpu":"t4"},"engine":"measured"}`)
	if a.State != "failed" || a.Worker != w.Worker || !strings.Contains(a.Reason, "start MemoryMark's Python program") {
		t.Errorf("%+v", a)
	}
	if text := fetch(t, url+"/v1/workers"); !strings.Contains(text, `"host":"rack-7"`) {
		t.Error(text)
	}
	r, err := http.Post(url+"/v1/workers/"+w.Worker+"/drain", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("draining it: %s", r.Status)
	}
	select {
	case <-w.ended:
	case <-time.After(patience):
		t.Error("the drained worker does not end")
	}
}

// A server measures on what it has, or on what it is told to take for a card.
func TestServeTakesJobs(t *testing.T) {
	noPython := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(noPython, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	url := serve(t, "--data", t.TempDir(), "--card", "t4", "--device", "cpu", "--python", noPython)
	a := measured(t, url, `{"workload":{"model":"resnet-18","gpu":"t4"},"engine":"measured"}`)
	if a.State != "failed" || !strings.Contains(a.Reason, "start MemoryMark's Python program") {
		t.Errorf("%+v", a)
	}
}

// And does one, with real steps on the processor.
func TestWorkerMeasures(t *testing.T) {
	python := testmachine.ForkingPython(t)
	data := t.TempDir()
	url := serve(t, "--data", data)
	startWorker(t, "--join", url, "--token-file", workerToken(t, data), "--card", "t4", "--device", "cpu", "--python", python)
	a := measured(t, url, `{"engine":"measured","multiple_of":8,"workload":{"gpu":"t4","batch":2,"sequence":16,"limit_gib":0.0029296875,
		"config":{"model_type":"gpt2","n_layer":2,"n_embd":32,"n_head":2,"vocab_size":300}}}`)
	if a.State != "succeeded" || a.Answer.Engine != "measured" || a.Answer.Batch == 0 {
		t.Errorf("%+v", a)
	}
}

// A worker without a GPU emulates any card, what is asked to be and what is not
// modelled, and says what it does that with.
func TestWorkerEmulates(t *testing.T) {
	python := testmachine.ForkingPython(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("NOT TESTED: it needs a C compiler")
	}
	if name, ok := measure.CardName(context.Background()); ok {
		t.Skipf("NOT TESTED: this machine has a card, %s", name)
	}
	data := t.TempDir()
	url := serve(t, "--data", data, "--no-measuring")
	w := startWorker(t, "--join", url, "--token-file", workerToken(t, data), "--python", python)
	if len(w.Cards) != 1 || w.Cards[0].ID != "emulated" || !strings.Contains(w.Cards[0].Name, "any card, emulated with PyTorch 2.") {
		t.Fatalf("joined as %+v", w)
	}
	for question, engine := range map[string]string{
		`"engine":"emulated","workload":{"gpu":"t4","sequence":16,"limit_gib":0.5,"config":{"model_type":"gpt2","n_layer":2,"n_embd":256,"n_head":2,"vocab_size":300}}`: "emulated",
		`"engine":"emulated","workload":{"gpu":"l4","sequence":16,"limit_gib":0.5,"config":{"model_type":"biogpt","num_hidden_layers":2,"hidden_size":256,"intermediate_size":512,
			"num_attention_heads":2,"vocab_size":300}}`: "emulated",
		`"workload":{"gpu":"t4","model":"resnet-18"}`: "predicted", // what is modelled is, unless asked
	} {
		a := measured(t, url, `{"multiple_of":256,`+question+`}`)
		if a.State != "succeeded" || a.Answer.Engine != engine || a.Answer.Batch == 0 || engine == "emulated" && a.Worker != w.Worker {
			t.Errorf("%s: %+v", question, a)
		}
	}
}

// A worker that was started for it runs code that came with an analysis, in a
// sandbox that is this program once more.
func TestWorkerRunsCode(t *testing.T) {
	python := testmachine.Python(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("NOT TESTED: it needs a C compiler")
	}
	needSandbox(t, python)
	data := t.TempDir()
	url := serve(t, "--data", data, "--no-measuring")
	w := startWorker(t, "--join", url, "--token-file", workerToken(t, data), "--python", python, "--allow-code", "--code-memory", "4GiB")
	if last := w.Cards[len(w.Cards)-1]; last.ID != "emulated-code" {
		t.Fatalf("joined as %+v", w)
	}
	for !strings.Contains(fetch(t, url+"/v1/workers"), "emulated-code") { // it has joined, and says next what it takes
		time.Sleep(10 * time.Millisecond)
	}
	a := analysed(t, url+"/v1/analyses/code", url, `{"multiple_of":512,"workload":{"gpu":"t4"},"code":{"file":"train.py","function":"make","files":{"train.py":
		"import torch\ndef make():\n    return torch.nn.Sequential(torch.nn.Embedding(9, 4096), torch.nn.Linear(4096, 4096)), lambda n: torch.zeros(n, 128, dtype=torch.long)"}}}`)
	if a.State != "succeeded" || a.Answer.Engine != "emulated" || a.Answer.Batch == 0 || a.Worker != w.Worker {
		t.Errorf("%+v", a)
	}
}

// needSandbox skips a test where this system has no sandboxes; package sandbox tests
// that they confine.
func needSandbox(t *testing.T, python string) {
	t.Helper()
	box, err := measure.NewConfinement(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Remove() }()
	var unsupported *sandbox.UnsupportedError
	if err := box.Check(t.Context(), measure.Python{Path: python}); errors.As(err, &unsupported) {
		t.Skipf("NOT TESTED: %v", err)
	}
}
