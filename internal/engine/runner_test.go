package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload/workloadtest"
)

// pythonOnGPU returns what looks like an interpreter and speaks as the PyTorch
// prober does on a GPU, and the file in which it keeps a diary.
func pythonOnGPU(t *testing.T) (python, diary string) {
	t.Helper()
	script, err := filepath.Abs("testdata/gpu.py")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	python, diary = filepath.Join(folder, "python"), filepath.Join(folder, "diary")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s' '%s'\n", testmachine.Python(t), script, diary)
	if err := os.WriteFile(python, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return python, diary
}

func readDiary(t *testing.T, path string) []string {
	t.Helper()
	text := testmachine.ReadFile(t, path)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func requestOf(t *testing.T, text string) analysis.Request {
	t.Helper()
	w := workloadtest.Parse(t, text)
	card := workloadtest.Card(t, "h200")
	return analysis.Request{Workload: w, Card: card}
}

// Questions that come at once, about models of several kinds, are measured one
// after the other in one session.
func TestRunnerAtOnce(t *testing.T) {
	python, diary := pythonOnGPU(t)
	r := engine.NewRunner(engine.RunnerOptions{Python: python, Device: "cuda"})
	var all sync.WaitGroup
	for i := range 8 {
		model := []string{`"bert", "sequence": 512, "config": {"num_hidden_layers": 2}`, `"gpt2", "config": {"n_layer": 1}`, `"lm-small", "config": {"num_layers": 1}`}[i%3]
		q := requestOf(t, fmt.Sprintf(`{"model": %s, "limit_gib": 64, "accumulate": %d}`, model, i+1))
		all.Go(func() {
			a, err := r.Answer(t.Context(), evidence.Measured, q, engine.Measurement{NoTiming: true})
			if err != nil || a.OptimalBatch != 40 || a.Engine != evidence.Measured {
				t.Errorf("question %d: %+v, %v", i, a, err)
			}
		})
	}
	all.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	lines := readDiary(t, diary)
	started := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return line != "started" })
	probes := slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "probe") })
	if turns := slices.Compact(probes); len(started) != 1 || len(turns) != 8 {
		t.Errorf("%d sessions, and probes in the order %v", len(started), turns)
	}
}

// A session that has ended is followed by another.
func TestRunnerOpensAgain(t *testing.T) {
	python, diary := pythonOnGPU(t)
	r := engine.NewRunner(engine.RunnerOptions{Python: python, Device: "cuda"})
	defer r.Close()
	for i, text := range []string{`{"model": "bert", "limit_gib": 64, "sequence": 13}`, `{"model": "bert", "limit_gib": 64}`} {
		_, err := r.Answer(t.Context(), evidence.Measured, requestOf(t, text), engine.Measurement{NoTiming: true})
		if (i == 0) != (err != nil) { // the prober dies of the first
			t.Errorf("%s: %v", text, err)
		}
	}
	if lines := readDiary(t, diary); lines[0] != "started" || !slices.Contains(lines[1:], "started") {
		t.Errorf("%v", lines)
	}
}

// Auto predicts where nothing can be measured, and finds that out once. Who
// asks for a measurement gets none.
func TestRunnerUnable(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"nvidia-smi": "echo NVIDIA L4", "python": "exit 1"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	told := 0
	r := engine.NewRunner(engine.RunnerOptions{
		Python: filepath.Join(folder, "python"), Device: engine.AutoDevice, Predicting: func(error) { told++ },
	})
	defer r.Close()
	q := requestOf(t, `{"model": "resnet-18"}`)
	for range 2 {
		a, err := r.Answer(t.Context(), evidence.Auto, q, engine.Measurement{})
		if err != nil || a.Engine != evidence.Predicted {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if told != 1 {
		t.Errorf("told %d times why it predicts", told)
	}
	var unable *engine.UnableError
	if _, err := r.Answer(t.Context(), evidence.Measured, q, engine.Measurement{}); !errors.As(err, &unable) {
		t.Errorf("%v", err)
	}
}

// A question that is cancelled while it waits for its turn returns the cancellation.
func TestRunnerCancelled(t *testing.T) {
	python, _ := pythonOnGPU(t)
	r := engine.NewRunner(engine.RunnerOptions{Python: python, Device: "cuda"})
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err := r.Check(t.Context(), evidence.Measured, requestOf(t, `{"model": "bert"}`), engine.Measurement{}, func(engine.Measurement) error {
		cancel()
		_, err := r.Answer(ctx, evidence.Measured, requestOf(t, `{"model": "bert"}`), engine.Measurement{})
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// An order is measured, and the recording of its answer arrives.
func TestRunOrder(t *testing.T) {
	python, diary := pythonOnGPU(t)
	var name, content string
	r := engine.NewRunner(engine.RunnerOptions{Python: python, Device: "cuda", Upload: func(_ context.Context, path string) (string, error) {
		data, err := os.ReadFile(path)
		name, content = filepath.Base(path), string(data)
		return "an-id", err
	}})
	q := requestOf(t, `{"model": "bert", "limit_gib": 64}`)
	q.Reserve = bytesize.GiB
	for range 2 {
		answer, err := r.RunOrder(t.Context(), orderOf(t, q, evidence.Measured), func(json.RawMessage) {})
		if err != nil {
			t.Fatal(err)
		}
		var a analysis.Answer
		if err := json.Unmarshal(answer, &a); err != nil {
			t.Fatal(err)
		}
		// Under the same limit as the search was: 64 GiB, 1 of them kept free.
		want := fmt.Sprintf("recorded process under %d", 63*bytesize.GiB)
		if a.OptimalBatch != 40 || name != "bert-batch-40.pickle" || content != want || a.Snapshot != "an-id" {
			t.Errorf("batch %d, recorded as %s: %q, want %q; %s", a.OptimalBatch, name, content, want, a.Snapshot)
		}
	}
	started := slices.DeleteFunc(readDiary(t, diary), func(line string) bool { return line != "started" })
	if len(started) != 2 {
		t.Errorf("%d sessions for two orders: between them the machine is somebody else's", len(started))
	}
}

// Without a device orders are predicted, and nothing else.
func TestRunOrderPredicts(t *testing.T) {
	r := engine.NewRunner(engine.RunnerOptions{})
	q := requestOf(t, `{"model": "resnet-18"}`)
	var kinds []string
	answer, err := r.RunOrder(t.Context(), orderOf(t, q, evidence.Predicted), func(event json.RawMessage) {
		var e engine.MeasuringEvent
		if err := json.Unmarshal(event, &e); err != nil {
			t.Error(err)
		}
		kinds = append(kinds, string(e.Kind))
	})
	if err != nil || !strings.Contains(string(answer), `"engine":"predicted"`) {
		t.Errorf("%s, %v", answer, err)
	}
	if got := slices.Compact(kinds); !slices.Equal(got, []string{"message", "tried", "message"}) {
		t.Errorf("told %v", got)
	}
	if _, err := r.RunOrder(t.Context(), orderOf(t, q, evidence.Measured), func(json.RawMessage) {}); err == nil {
		t.Error("measured without a device")
	}
}

func orderOf(t *testing.T, q analysis.Request, by evidence.Engine) json.RawMessage {
	t.Helper()
	order, err := engine.NewOrder(q, by)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
