package measure

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// TestBuildOnce has a user's function called once for all probes on an emulated
// card, unless that cannot be.
func TestBuildOnce(t *testing.T) {
	python := testmachine.ForkingPython(t)
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("NOT TESTED: it needs a C compiler")
	}
	card := workloadtest.Card(t, "a10")
	w, err := workload.Draft{}.WithoutModel()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	calls := t.TempDir()
	s, err := Start(context.Background(), SessionOptions{
		Python: Python{Path: python}, Device: "cuda", Card: card, User: &UserModel{}, Env: []string{"CALLED=" + calls},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		function, calls string
		failure         string // of each probe, "" if it trains
	}{
		{"make", ".", ""},
		{"on_device", "....", ""}, // once ahead, then by each probe
		{"fails", "....", "there is no such model"},
		{"dies", "...", "killed by SIGKILL"}, // the builder takes the first probe with it
		{"shouts", "....", "xxx"},
		{"daemon", "....", "ended with status 0 without an answer and left others running"},
	} {
		t.Run(c.function, func(t *testing.T) {
			user := &UserModel{Path: "testdata/users/ahead.py", Function: c.function}
			var peaks []Peaks
			for range 3 {
				r, err := s.Probe(context.Background(), Probe{Workload: w, User: user, Batches: []int64{8}, Steps: 2}, nil)
				if c.failure != "" {
					if text := failureText(r, err); !strings.Contains(text, c.failure) || len(text) > 10<<10 {
						t.Errorf("it ended with %.2000q", text)
					}
					continue
				}
				if err != nil || r.Outcomes[0].Failure != nil {
					t.Fatalf("%v: %+v", err, r)
				}
				peaks = append(peaks, r.Outcomes[0].Peaks())
			}
			if c.failure == "" && (peaks[0] != peaks[1] || peaks[1] != peaks[2] || peaks[0].Allocated == 0) {
				t.Errorf("the probes took %+v", peaks)
			}
			if got, err := os.ReadFile(filepath.Join(calls, c.function)); err != nil || string(got) != c.calls {
				t.Errorf("it was called %q times, want %q: %v", got, c.calls, err)
			}
		})
	}
}

// failureText is what failed, of a batch or of all of a probe.
func failureText(r *ProbeResult, err error) string {
	if err != nil {
		return err.Error()
	}
	if f := r.Outcomes[0].Failure; f != nil {
		return f.Message
	}
	return ""
}
