package cli

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/measure/measuretest"
	"memorymark/internal/worker"
	"memorymark/internal/workload"
)

// TestMeasurerUploads has an order measured by something that speaks as the
// PyTorch worker does on a GPU, and sees the recording of its answer arrive.
func TestMeasurerUploads(t *testing.T) {
	var name, content string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		name, content = r.URL.Query().Get("name"), string(body)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":"%x"}`, sha256.Sum256(body))
	}))
	defer s.Close()
	m := measurer{python: measure.Python{Path: pythonThatRuns(t, "testdata/gpu.py")}, device: "cuda", upload: &worker.Uploader{URL: s.URL}}
	answer, err := m.run(t.Context(), orderBERT(t, bytesize.GiB), func(json.RawMessage) {})
	if err != nil {
		t.Fatal(err)
	}
	var a analysis.Answer
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatal(err)
	}
	if a.OptimalBatch != 40 || name != "bert-batch-40.pickle" {
		t.Errorf("batch %d, recorded as %s", a.OptimalBatch, name)
	}
	// Under the same limit as the search was: 64 GiB, 1 of them kept free.
	if want := fmt.Sprintf("recorded process under %d", 63*bytesize.GiB); content != want || a.Snapshot != fmt.Sprintf("%x", sha256.Sum256([]byte(want))) {
		t.Errorf("%s: %q, want %q", a.Snapshot, content, want)
	}
}

// pythonThatRuns returns what looks like an interpreter and runs a script,
// whatever it is told to run.
func pythonThatRuns(t *testing.T, script string) string {
	t.Helper()
	absolute, err := filepath.Abs(script)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "python")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s'\n", measuretest.Python(t), absolute)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func orderBERT(t *testing.T, reserve bytesize.Bytes) json.RawMessage {
	t.Helper()
	w, err := workload.Parse([]byte(`{"model":"bert","limit_gib":64}`))
	if err != nil {
		t.Fatal(err)
	}
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	order, err := analysis.NewOrder(analysis.Request{Workload: w, Card: card, Question: analysis.Question{Reserve: reserve}}, evidence.Measured)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
