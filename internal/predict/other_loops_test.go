package predict

import (
	"testing"

	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// Other loops are predicted as if they had been asked for.
func TestOtherLoops(t *testing.T) {
	const gpt2 = `"config": {"model_type": "gpt2", "n_layer": 2}, "batch": 4, "sequence": 64, "gpu": "h200"`
	for _, loop := range []string{"plain", "trainer"} {
		s := mustRun(t, workloadtest.Parse(t, `{`+gpt2+`, "loop": "`+loop+`"}`), workloadtest.Card(t, "h200"))
		others, err := s.OtherLoops()
		if err != nil || len(others) != 3 {
			t.Fatalf("%s: %v, %v", loop, others, err)
		}
		for _, o := range others {
			want := predictText(t, `{`+gpt2+`, "loop": "`+string(o.Loop)+`"}`)
			if string(o.Loop) == loop || o.PeakReserved != want.PeakReserved() || !o.Fits {
				t.Errorf("beside %s: %+v, want %v", loop, o, want.PeakReserved())
			}
		}
	}
}

func TestNoOtherLoops(t *testing.T) {
	for _, text := range []string{
		`{"model": "bert", "phase": "infer"}`,
		`{"model": "bert", "loop": {"outputs": "kept"}}`,
		`{"model": "lm-small"}`,
		`{"model": "bert", "optimizer": "muon"}`, // is two, which libraries do not step
		`{"model": "bert", "parallel": {"kind": "ddp", "gpus": 2}}`,
		`{"model": "bert", "versions": {"torch": "2.15", "transformers": "5.22"}}`,
	} {
		w, err := workload.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if others := w.OtherLoops(); others != nil {
			t.Errorf("%s has %d other loops", text, len(others))
		}
	}
}
