package predict

import (
	"runtime"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/models/modelstest"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// mustPredict predicts a workload that can be predicted.
func mustPredict(tb testing.TB, w *workload.Workload, card *gpu.Card) *Prediction {
	tb.Helper()
	p, err := Predict(w, card, Options{})
	if err != nil {
		tb.Fatalf("%s on %s: %v", w.Name(), card.ID, err)
	}
	return p
}

// mustRun runs the process of such a workload.
func mustRun(tb testing.TB, w *workload.Workload, card *gpu.Card) *Process {
	tb.Helper()
	s, err := Run(w, card, Options{})
	if err != nil {
		tb.Fatalf("%s on %s: %v", w.Name(), card.ID, err)
	}
	return s
}

// TestAtOnce: as many small models as there are cores, and one that is as deep as
// can be.
func TestAtOnce(t *testing.T) {
	modelstest.NeedSource(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for text, want := range map[string]int{
		`{"model": "bert"}`: 8,
		`{"model": "bert", "config": {"num_hidden_layers": 100}}`:       5,
		`{"model": "bert", "config": {"num_hidden_layers": 1000}}`:      1,
		`{"model": "bert", "lengths": [17, 512]}`:                       4,
		`{"model": "whisper-tiny", "config": {"decoder_layers": 1000}}`: 1,
		`{"model": "resnet50"}`:                                         8,
	} {
		w := workloadtest.Parse(t, text)
		if got := MaxConcurrent(w, false); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
	w := workloadtest.Parse(t, `{"model": "bert", "accumulate": 20}`)
	if all, recorded := MaxConcurrent(w, false), MaxConcurrent(w, true); all != 8 || recorded != 2 {
		t.Errorf("20 passes of 12 layers: %d at once, and %d that are recorded", all, recorded)
	}
}
