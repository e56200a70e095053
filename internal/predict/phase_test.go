package predict

import (
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
	"memorymark/internal/workload/workloadtest"
)

func simulateSteps(t *testing.T, data string, steps int) *Process {
	t.Helper()
	w := workloadtest.Parse(t, data)
	card := workloadtest.Card(t, "h200")
	s, err := Run(w, card, Options{Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The phases of the later steps reach the peaks that the steps themselves have,
// and the trace that begins with them shows the same.
func TestPhasesAfter(t *testing.T) {
	for name, data := range map[string]string{
		"train":      `{"model": "lm-small", "batch": 2, "config": {"num_layers": 2}}`,
		"accumulate": `{"model": "lm-small", "batch": 2, "config": {"num_layers": 2}, "accumulate": 3}`,
		"forward":    `{"model": "lm-small", "batch": 2, "config": {"num_layers": 2}, "phase": "forward"}`,
		"amp":        `{"model": "gpt2", "batch": 2, "config": {"n_layer": 2}, "precision": "amp-bf16"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := simulateSteps(t, data, 5)
			var requested, allocated, reserved bytesize.Bytes
			for _, p := range phasesAfter(t, s) {
				requested, allocated, reserved = max(requested, p.PeakRequested), max(allocated, p.PeakAllocated), max(reserved, p.PeakReserved)
			}
			steps := s.Steps()[2:]
			if want := steps[0]; requested != want.PeakRequested || allocated != want.PeakAllocated || reserved != want.PeakReserved {
				t.Errorf("phases reach %v, %v, %v; steps %+v", requested, allocated, reserved, want)
			}
			tr := traceAfter(t, s)
			if err := tr.CheckValid(); err != nil {
				t.Fatal(err)
			}
			if peak := tr.Peak().Bytes; bytesize.Bytes(peak) != requested {
				t.Errorf("the trace reaches %v, the phases %v", bytesize.Bytes(peak), requested)
			}
			for _, m := range tr.Marks {
				if m.Name == trace.ForwardMark && !m.End {
					if m.Event != 0 {
						t.Errorf("the trace begins %d events before its first step", m.Event)
					}
					break
				}
			}
		})
	}
}

// What was live before the recording is known to be what it is, and a reader
// who has only the recording comes to the same sums.
func TestTraceAfterIsClassified(t *testing.T) {
	s := simulateSteps(t, `{"model": "lm-small", "batch": 2, "config": {"num_layers": 2}}`, 4)
	tr := traceAfter(t, s)
	known := tr.Lifetimes()
	tr.Classify(known)
	for i := range tr.Initial {
		tr.Initial[i].For = trace.Unknown
	}
	guessed := tr.Lifetimes()
	tr.Classify(guessed)
	sums := func(ls []trace.Lifetime) map[trace.Category]int64 {
		out := make(map[trace.Category]int64)
		for _, l := range trace.Live(ls, -1) {
			if l.For == trace.Input {
				l.For = trace.Parameter // nothing tells them apart
			}
			out[l.For] += l.Size
		}
		return out
	}
	want, got := sums(known), sums(guessed)
	for _, c := range []trace.Category{trace.Parameter, trace.OptimizerState, trace.Gradient, trace.Activation} {
		if want[c] != got[c] {
			t.Errorf("%v is %d and inferred as %d", c, want[c], got[c])
		}
	}
	if want[trace.OptimizerState] < 2*want[trace.Parameter]-1<<20 {
		t.Errorf("there is no optimizer state before the recording: %v", want)
	}
}

// A process that fails in its first step has no later ones to show.
func TestTraceAfterOutOfMemory(t *testing.T) {
	s := simulateSteps(t, `{"model": "lm-small", "batch": 2, "limit_gib": 0.5}`, 3)
	tr := traceAfter(t, s)
	if tr.Count(trace.OutOfMemory) != 1 || tr.Count(trace.Alloc) == 0 {
		t.Errorf("the trace has %d failures and %d allocations", tr.Count(trace.OutOfMemory), tr.Count(trace.Alloc))
	}
	if phases := phasesAfter(t, s); len(phases) != 3 {
		t.Errorf("phases %v", phases)
	}
}

func traceAfter(t *testing.T, s *Process) *trace.Trace {
	t.Helper()
	out, err := s.TraceAfter(2)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func phasesAfter(t *testing.T, s *Process) []Phase {
	t.Helper()
	out, err := s.PhasesAfter(2)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
