package engine_test

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"memorymark/internal/measure"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// tiny is a model that a CPU steps through in no time.
func tiny(t *testing.T) *workload.Workload {
	t.Helper()
	w := workloadtest.Parse(t, `{"sequence": 16, "config": {"model_type": "bert", "hidden_size": 32,
		"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 500}}`)
	return w
}

// A transcript answers as the session did.
func TestOpenTranscript(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	w := tiny(t)
	var transcript bytes.Buffer
	s, err := measure.Start(context.Background(), measure.SessionOptions{
		Python: measure.Python{Path: testmachine.Python(t)}, Device: "cpu", Workload: w, Transcript: &transcript,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	probe := measure.Probe{Workload: w, Batches: []int64{2}, Steps: 1}
	want, err := s.Probe(context.Background(), probe, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openTranscript(context.Background(), bytes.NewReader(transcript.Bytes()), measure.SessionOptions{Device: "cpu", Workload: w})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	have, err := again.Probe(context.Background(), probe, nil)
	if err != nil || have.Outcomes[0].Peaks() != want.Outcomes[0].Peaks() || again.Versions != s.Versions || again.Device != s.Device {
		t.Errorf("replayed %+v, %v; want %+v", have, err, want)
	}
	probe.Batches = []int64{3}
	if _, err := again.Probe(context.Background(), probe, nil); err == nil {
		t.Error("a probe that was not recorded was answered")
	}
}

// FuzzOpenTranscript reads whatever a transcript could hold, and asks it.
func FuzzOpenTranscript(f *testing.F) {
	recorded, err := os.ReadFile("../measure/testdata/transcript.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(recorded)
	f.Add([]byte("< {\"type\":\"hello\",\"protocol\":1}\n> {\"type\":\"prepare\",\"id\":1,\"look_id\":1}\n< {\"id\":1}\n"))
	f.Fuzz(func(t *testing.T, transcript []byte) {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
		defer stop()
		w := tiny(t)
		s, err := openTranscript(ctx, bytes.NewReader(transcript), measure.SessionOptions{Device: "cpu", Workload: w})
		if err != nil {
			return
		}
		defer s.Close()
		r, err := s.Probe(ctx, measure.Probe{Workload: w, Batches: []int64{16, 32}, Steps: 2}, func(measure.StepProgress) {})
		if err != nil {
			return
		}
		for _, o := range r.Outcomes { // what analyses rely on
			if o.Failure == nil && len(o.Steps) != 2 {
				t.Errorf("a report without all of its steps was believed: %+v", o)
			}
		}
	})
}
