package predict

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/models/modelstest"
	"memorymark/internal/testmachine"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// TestTrainers predicts what was measured of training in Hugging Face's
// Trainer, in Lightning's and in Accelerate's loop.
func TestTrainers(t *testing.T) {
	allocated, reserved := predictPeaks(t, "trainers.jsonl")
	// What is left is blocks that are not split, by where they lie: autocast's
	// casts go in the order of a hash map of addresses on the CPU.
	if e := allocated.sum(); e.Exact < e.Cases-4 || e.Lowest < -0.003 || e.Highest > 0.0002 {
		t.Errorf("allocated is %+v, it was better; farthest are %s", e, allocated.farthest())
	}
	if e := reserved.sum(); e.Exact < e.Cases {
		t.Errorf("reserved is %+v, it was better; farthest are %s", e, reserved.farthest())
	}
}

// TestLoops does the same for other models, scalers, optimizers and loops of
// people's own, measured after the loops were written. What every one of them
// asks for is predicted; what is left is where blocks lie.
func TestLoops(t *testing.T) {
	allocated, reserved := predictPeaks(t, "loops.jsonl")
	if e := allocated.sum(); e.Exact < e.Cases-8 || e.Worst > 0.0013 {
		t.Errorf("allocated is %+v, it was better; farthest are %s", e, allocated.farthest())
	}
	if e := reserved.sum(); e.Exact < e.Cases-2 || e.Worst > 0.092 {
		t.Errorf("reserved is %+v, it was better; farthest are %s", e, reserved.farthest())
	}
}

// predictPeaks compares the peaks of each step with those that were measured.
func predictPeaks(t *testing.T, file string) (allocated, reserved lineErrors) {
	t.Helper()
	for _, line := range readLines[measuredPeaks](t, file) {
		p, err := predictLine(line.Workload, workloadtest.Card(t, "h200"))
		if err != nil {
			t.Errorf("%s: %v", line.ID, err)
			continue
		}
		var a, r float64
		for i, s := range p.Steps {
			a = worse(a, int64(s.PeakAllocated), line.Measured.PeakAllocated[i])
			r = worse(r, int64(s.PeakReserved), line.Measured.PeakReserved[i])
		}
		allocated = append(allocated, lineError{id: line.ID, share: a, parameters: p.Parameters})
		reserved = append(reserved, lineError{id: line.ID, share: r, parameters: p.Parameters})
	}
	return allocated, reserved
}

// TestRecordedLoops predicts processes of many training loops and optimizers,
// and compares them with recordings, event by event. testdata/loops/README.md
// says how they were recorded.
func TestRecordedLoops(t *testing.T) {
	const dir = "testdata/loops"
	data := testmachine.ReadFile(t, filepath.Join(dir, "cases.jsonl"))
	for line := range strings.Lines(string(data)) {
		c := struct {
			recordedProcess
			Steps int // that were recorded
		}{Steps: 2}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			w, err := workload.Parse(c.Workload)
			modelstest.NeedSourceFor(t, err)
			if err != nil {
				t.Fatal(err)
			}
			p := ran(t, w, h200, c.Steps)
			want := tracetest.Trace(t, filepath.Join(dir, c.ID+".pickle.xz"))
			if difference := compareRequests(p.requests(), want, func(event int) bool { return dropsCasts(want, event) }); difference != "" {
				t.Error(difference)
			}
		})
	}
}

// TestRepeatedStep holds a step that was repeated to one that ran: loops leave
// a batch, a loss or gradients behind, which the next step drops.
func TestRepeatedStep(t *testing.T) {
	for _, loop := range []string{`"plain"`, `"trainer"`, `"lightning"`, `"accelerate"`, `{"outputs": "kept", "zero_grad": "before-backward"}`} {
		t.Run(loop, func(t *testing.T) {
			w := workloadtest.Parse(t, `{"config": {"model_type": "gpt2", "n_layer": 2}, "batch": 2, "sequence": 64, "precision": "amp-bf16", "loop": `+loop+`}`)
			p := stillRunning(t, w)
			from := p.stepEnds[1]
			if !p.repeat() {
				t.Fatal("the second step cannot be repeated")
			}
			repeated := p.requests().Requests()

			ran := stillRunning(t, w)
			ran.loop.step()
			want := ran.requests().Requests()
			if len(repeated) != len(want) || p.events() == from {
				t.Fatalf("%d requests, want %d", len(repeated), len(want))
			}
			for i := range want {
				if got := repeated[i]; got.Size != want[i].Size || got.ID != want[i].ID || got.Free != want[i].Free {
					t.Fatalf("request %d is %+v, want %+v", i, got, want[i])
				}
			}
		})
	}
}

// stillRunning is a process after its second step.
func stillRunning(t *testing.T, w *workload.Workload) *program {
	t.Helper()
	p := built(t, w, h200)
	p.train(2)
	return p
}
