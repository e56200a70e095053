package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

const MiB = 1 << 20

// tiny is a workload that a CPU trains in no time.
func tiny(t *testing.T) *workload.Workload {
	t.Helper()
	w := workloadtest.Parse(t, `{"sequence": 16, "config": {"model_type": "bert", "hidden_size": 32,
		"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 500}}`)
	return w
}

// start opens a session on the CPU that ends with the test.
func start(t *testing.T, o SessionOptions) *Session {
	t.Helper()
	return startWith(t, testmachine.ForkingPython(t), o)
}

// startAlone does too, with a prober that is a child of this process.
func startAlone(t *testing.T, o SessionOptions) *Session {
	t.Helper()
	return startWith(t, testmachine.Python(t), o)
}

func startWith(t *testing.T, python string, o SessionOptions) *Session {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("OMP_NUM_THREADS", "1") // threads that wait for each other take long on a busy machine
	o.Python, o.Device = Python{Path: python}, "cpu"
	s, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestProbe(t *testing.T) {
	w := tiny(t)
	s := start(t, SessionOptions{Workload: w})
	if s.Device.Type != "cpu" || s.Device.Total == 0 || s.Versions.Torch == "" || s.Versions.Transformers == "" {
		t.Errorf("the session found %+v, %+v", s.Device, s.Versions)
	}
	var steps []int
	r, err := s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{4}, Steps: 3, Timed: 3}, func(p StepProgress) { steps = append(steps, p.Step) })
	if err != nil {
		t.Fatal(err)
	}
	o := r.Outcomes[0]
	if o.Failure != nil || len(o.Steps) != 3 || !slices.Equal(steps, []int{1, 2, 3}) || o.SecondsPerStep <= 0 {
		t.Fatalf("%+v, with the steps %v", o, steps)
	}
	// Adam keeps two numbers for each parameter from the first step on.
	if grown := o.Steps[0].EndAllocated - r.ModelAllocated; grown < 8*r.Parameters || grown > 8*r.Parameters+MiB {
		t.Errorf("a first step left %d bytes more of %d parameters", grown, r.Parameters)
	}
	if first, second := o.Steps[0], o.Steps[1]; second.EndAllocated != first.EndAllocated || second.PeakAllocated < second.EndAllocated || second.Phases["backward"].Allocated == 0 {
		t.Errorf("steps took %+v and %+v", first, second)
	}
	if r.HostPeak == 0 || r.WallSeconds == 0 {
		t.Errorf("no host memory or time: %+v", r)
	}
}

// What a model's modules make when they are imported is not the model's, also
// where the session did not know which model would come: torchaudio, which
// transformers imports where it is installed, makes a tensor
// (torchaudio/compliance/kaldi.py, EPSILON).
func TestImportsAreNotMeasured(t *testing.T) {
	folder := t.TempDir()
	testmachine.WriteFile(t, filepath.Join(folder, "torchaudio.py"), "import torch\nEPSILON = torch.zeros(1 << 20)\n")
	w := tiny(t)
	var models []int64
	for _, o := range []SessionOptions{{}, {Env: []string{"PYTHONPATH=" + folder}}} {
		r, err := start(t, o).Probe(t.Context(), Probe{Workload: w, Batches: []int64{2}, Steps: 1}, nil)
		if err != nil || r.Outcomes[0].Failure != nil {
			t.Fatal(r, err)
		}
		models = append(models, r.ModelAllocated)
	}
	if models[0] != models[1] {
		t.Errorf("a model of %d bytes takes %d beside a module that makes a tensor", models[0], models[1])
	}
}

// TestSpares holds that a spare process answers as a fresh one does, and that
// none outlives the session.
func TestSpares(t *testing.T) {
	w := tiny(t)
	s := startAlone(t, SessionOptions{Workload: w, Spares: 2})
	group := s.link.(*process).cmd.Process.Pid
	waiting := descendants(t, group)
	if len(waiting) != 2 {
		t.Errorf("%d processes wait, want 2", len(waiting))
	}
	var peaks []Peaks
	for range 2 {
		r, err := s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{4}, Steps: 2}, nil)
		if err != nil || r.Outcomes[0].Failure != nil {
			t.Fatal(r, err)
		}
		peaks = append(peaks, r.Outcomes[0].Peaks())
	}
	r, err := s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{4}, Steps: 2}, nil)
	if err != nil || r.Outcomes[0].Peaks() != peaks[0] || peaks[1] != peaks[0] {
		t.Errorf("spares took %v, a fresh process %v, %v", peaks, r, err)
	}
	// One that is left over ends with the session, and one that died is no loss.
	again := startAlone(t, SessionOptions{Workload: w, Spares: 2})
	left := descendants(t, again.link.(*process).cmd.Process.Pid)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range left {
		if running(pid) {
			t.Errorf("spare %d outlives the session", pid)
		}
	}
}

func TestProbeLimit(t *testing.T) {
	w := tiny(t)
	s := start(t, SessionOptions{Workload: w})
	r, err := s.Probe(context.Background(), Probe{Workload: w, Batches: []int64{1, 512}, Steps: 2, Limit: 2 * MiB}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Outcomes[0].Failure; f != nil {
		t.Errorf("a batch of 1 failed: %v", f)
	}
	f := r.Outcomes[1].Failure
	if f == nil || !f.TooBig() || f.Phase != "forward" || f.Step != 1 || !strings.Contains(f.Traceback, "LiveLimit") {
		t.Errorf("a batch of 512 did not run out of memory: %+v", f)
	}
}

// userModel is a function of testdata/users/train.py.
func userModel(t *testing.T, function string) *UserModel {
	t.Helper()
	path, err := filepath.Abs("testdata/users/train.py")
	if err != nil {
		t.Fatal(err)
	}
	return &UserModel{Path: path, Function: function}
}

// try probes a user's model once; its failure is nil if it trains.
func try(t *testing.T, s *Session, user *UserModel) *Failure {
	t.Helper()
	return tryIn(t, s, user, workload.FP32)
}

func tryIn(t *testing.T, s *Session, user *UserModel, precision workload.Precision) *Failure {
	t.Helper()
	w := workload.Default()
	w.Precision = precision
	r, err := s.Probe(context.Background(), Probe{Workload: w, User: user, Batches: []int64{8}, Steps: 3}, nil)
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case err != nil:
		t.Fatal(err)
	case r.Outcomes[0].Failure == nil && len(r.Outcomes[0].Steps) != 3:
		t.Fatalf("not all steps ran: %+v", r.Outcomes[0])
	}
	return r.Outcomes[0].Failure
}

// TestUser trains what user functions return, and survives what they do: all
// of them in one session.
func TestUser(t *testing.T) {
	s := start(t, SessionOptions{User: userModel(t, "make")})
	for _, c := range []struct {
		function string
		class    Class // "" if it trains
		text     string
	}{
		{"make", "", ""},
		{"alone", Other, "return a function batch(n)"},
		{"crash", Crash, "SIGSEGV"},
		{"killed", Crash, "host memory"},
		{"leave", Crash, "status 7"},
		{"half_line", Crash, "middle of a line"},
		{"raises", Other, "my own mistake"},
		{"no_plan", Other, "unable to find an engine"},
		{"no_plan_fits", OutOfMemory, "unable to find an engine"},
		{"imports", Missing, "a_package_that_nobody_has"},
		{"returns_nothing", Other, "NoneType"},
		{"not_there", Other, "no function not_there"},
		{"flood", "", ""},
		{"named", "", ""},
		{"adapted", "", ""},
		{"dataset", "", ""},
		{"sample", "", ""},
	} {
		f := try(t, s, userModel(t, c.function))
		switch {
		case c.class == "" && f != nil:
			t.Errorf("%s did not train: %v", c.function, f)
		case c.class != "" && (f == nil || f.Class != c.class || !strings.Contains(f.Error(), c.text)):
			t.Errorf("%s: want %s with %q, have %v", c.function, c.class, c.text, f)
		}
	}
	for _, function := range []string{"make", "dataset"} { // whose batches are in float32
		if f := tryIn(t, s, userModel(t, function), workload.BF16); f != nil {
			t.Errorf("%s did not train in bfloat16: %v", function, f)
		}
	}
}

func TestHang(t *testing.T) {
	s := startAlone(t, SessionOptions{User: userModel(t, "hang"), Timeout: 3 * time.Second})
	group := s.link.(*process).cmd.Process.Pid
	if f := try(t, s, userModel(t, "hang")); f == nil || f.Class != Timeout {
		t.Errorf("a probe that hangs ended with %v", f)
	}
	if left := descendants(t, group); len(left) > 0 {
		t.Errorf("%d processes outlive the probe", len(left))
	}
}

// TestCancel holds that nothing outlives a cancelled probe, nor the session.
func TestCancel(t *testing.T) {
	user := userModel(t, "hang")
	s := startAlone(t, SessionOptions{User: user})
	group := s.link.(*process).cmd.Process.Pid
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Probe(ctx, Probe{Workload: workload.Default(), User: user, Batches: []int64{8}, Steps: 3}, nil)
		ended <- err
	}()
	hangs(t, group)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled probe ended with %v", err)
	}
	if left := descendants(t, group); len(left) > 0 {
		t.Errorf("%d processes outlive the probe", len(left))
	}
	// A session that is closed while a probe hangs takes it along.
	go func() {
		_, _ = s.Probe(context.Background(), Probe{Workload: workload.Default(), User: user, Batches: []int64{8}, Steps: 3}, nil)
	}()
	hanging := hangs(t, group)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(hanging, group) {
		if running(pid) {
			t.Errorf("process %d outlives the session", pid)
		}
	}
}

// hangs waits until a probe and its child hang, and returns their processes.
func hangs(t *testing.T, group int) []int {
	t.Helper()
	for {
		if hanging := descendants(t, group); len(hanging) >= 2 {
			return hanging
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// descendants are the processes below one.
func descendants(t *testing.T, of int) []int {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(folders) == 0 {
		t.Skip("NOT TESTED: there is no /proc to look for processes in")
	}
	children := make(map[int][]int)
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		if parent, zombie := parentOf(pid); !zombie {
			children[parent] = append(children[parent], pid)
		}
	}
	var out []int
	for queue := []int{of}; len(queue) > 0; queue = queue[1:] {
		out = append(out, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return out
}

func parentOf(pid int) (parent int, zombie bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, true
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the name
	fields := strings.Fields(rest)
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0] == "Z"
}

func running(pid int) bool {
	_, zombie := parentOf(pid)
	return !zombie
}

// TestProberGone says what a prober printed that ends before it is ready.
func TestProberGone(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"ends", `echo "ImportError: no module named site" >&2; exit 1`, "no module named site"},
		{"babbles", `echo hello >&4; sleep 5`, "not a message"},
		{"half a line", `printf '{"type":"hel' >&4; exit 0`, "middle of a line"},
		{"another version", `echo '{"type":"hello","protocol":99}' >&4; sleep 5`, "protocol 99"},
	} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		python := fakePython(t, t.TempDir(), c.script)
		if _, err := Start(context.Background(), SessionOptions{Python: Python{Path: python}, Device: "cpu"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestMissingPackage(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	hello := `echo '{"type":"hello","protocol":1,"python":"3.12.1"}' >&4; read line <&3; `
	for _, c := range []struct{ name, answer, want string }{
		{"missing", `{"type":"failed","id":1,"failure":{"class":"missing","package":"torch","message":"No module named torch"}}`, "-m pip install torch"},
		{"old PyTorch", `{"type":"ready","id":1,"torch":"2.3.1","transformers":"5.0"}`, "-m pip install --upgrade torch"},
		{"old transformers", `{"type":"ready","id":1,"torch":"2.11.0","transformers":"4.49.0"}`, "-m pip install --upgrade transformers"},
	} {
		python := fakePython(t, t.TempDir(), hello+"echo '"+c.answer+"' >&4; sleep 5")
		_, err := Start(context.Background(), SessionOptions{Python: Python{Path: python}, Device: "cpu"})
		var missing *RequirementError
		if !errors.As(err, &missing) || !strings.Contains(missing.Fix, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestInstall holds that a prober that was changed is replaced.
func TestInstall(t *testing.T) {
	cache := t.TempDir()
	folder, err := installProber(cache)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(folder, proberModule, "probe.py")
	testmachine.WriteFile(t, changed, "import os")
	again, err := installProber(cache)
	if err != nil || again != folder {
		t.Fatal(again, err)
	}
	if text, err := os.ReadFile(changed); err != nil || len(text) < 100 {
		t.Errorf("the changed file is still there: %q, %v", text, err)
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may read the folder: %v, %v", info.Mode(), err)
	}
}

// The prober gets our environment and the variables that it is given.
func TestEnvironment(t *testing.T) {
	t.Setenv("MEMORYMARK_OURS", "ours")
	folder := t.TempDir()
	python, seen := filepath.Join(folder, "python"), filepath.Join(folder, "seen")
	script := fmt.Sprintf("#!/bin/sh\necho $MEMORYMARK_OURS $MEMORYMARK_GIVEN > '%s'\nexit 1\n", seen)
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), SessionOptions{Python: Python{Path: python}, Device: "cpu", Env: []string{"MEMORYMARK_GIVEN=given"}})
	if err == nil {
		t.Error("a script was taken for a prober")
	}
	if text, err := os.ReadFile(seen); err != nil || string(text) != "ours given\n" {
		t.Errorf("%q, %v", text, err)
	}
}
