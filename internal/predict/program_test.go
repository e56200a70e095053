package predict

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/pymodule"
	"memorymark/internal/testmachine"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// ownProcess is a line of own/peaks.jsonl.
type ownProcess struct {
	ID, File, Function, Precision string
	Batch                         int64
	Measured                      struct {
		Parameters     int64
		ModelAllocated int64   `json:"model_allocated"`
		PeakAllocated  []int64 `json:"peak_allocated"`
		PeakReserved   []int64 `json:"peak_reserved"`
		EndAllocated   []int64 `json:"end_allocated"`
	}
}

// evaluatedPrograms are the functions of own/models.py whose source is known, and by how much
// percent a peak of reserved memory may be off. In bfloat16 it depends on the addresses that the
// driver hands out. The others need packages whose source is not there, or have convolutions
// that are in no table.
var evaluatedPrograms = map[string]float64{
	"bart": 1, "electra": 0, "gemma2": 0, "gpt_neox": 0, "mixtral": 0, "nanogpt": 2, "opt": 2, "phi3": 0, "torch_encoder": 3,
	"whisper": 0.1,
}

// equalPrograms is how many processes must be equal to the byte: the model, the peaks of all
// steps, and what stays between them.
const equalPrograms = 20

// TestPrograms predicts models as people bring them, from their source, and compares with
// what an H200 measured.
func TestPrograms(t *testing.T) {
	python := testmachine.Python(t)
	equal := 0
	for _, c := range readLines[ownProcess](t, "own/peaks.jsonl") {
		s, err := predictProgram(t, python, c)
		most, known := evaluatedPrograms[c.Function]
		switch {
		case !known && err == nil:
			t.Errorf("%s is predicted; it is not expected to be", c.ID)
		case !known && !strings.Contains(err.Error(), "models.py:") && !strings.Contains(err.Error(), "the convolution "):
			t.Errorf("%s: the error does not say where: %v", c.ID, err)
		case known && err != nil:
			t.Errorf("%s: %v", c.ID, err)
		case known:
			got, want := measuredOf(s), []any{c.Measured.Parameters, c.Measured.ModelAllocated, c.Measured.PeakAllocated, c.Measured.PeakReserved, c.Measured.EndAllocated}
			if fmt.Sprint(got) == fmt.Sprint(want) {
				equal++
			}
			last := len(c.Measured.PeakReserved) - 1
			off := 100 * (float64(s.Steps()[last].PeakReserved)/float64(c.Measured.PeakReserved[last]) - 1)
			if max(off, -off) > most || s.Parameters() != c.Measured.Parameters {
				t.Errorf("%s: reserved memory is off by %.2f %%\n got %v\nwant %v", c.ID, off, got, want)
			}
		}
	}
	if equal < equalPrograms {
		t.Errorf("%d processes are equal; %d were", equal, equalPrograms)
	}
}

// writtenProcess is a line of own/written.jsonl.
type writtenProcess struct {
	Function, Precision string
	Batch               int64
	Parameters          int64
	ModelAllocated      int64   `json:"model_allocated"`
	PeakAllocated       []int64 `json:"peak_allocated"`
	PeakReserved        []int64 `json:"peak_reserved"`
	EndAllocated        []int64 `json:"end_allocated"`
}

// TestWrittenPrograms compares more models with the same processes on an emulated card, which
// must be equal, and looks for the place of what is not known.
func TestWrittenPrograms(t *testing.T) {
	python := testmachine.Python(t)
	const file = truthDir + "/own/written.py"
	for _, c := range readLines[writtenProcess](t, "own/written.jsonl") {
		s, err := runProgram(t, programOf(t, python, file, c.Function), c.Batch, c.Precision, workload.PlainLoop)
		if err != nil {
			t.Errorf("%s: %v", c.Function, err)
			continue
		}
		got, want := measuredOf(s), []any{c.Parameters, c.ModelAllocated, c.PeakAllocated, c.PeakReserved, c.EndAllocated}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s in %s:\n got %v\nwant %v", c.Function, c.Precision, got, want)
		}
	}
	for _, c := range []struct{ function, precision, want string }{
		{"gru", "fp32", ": torch.nn.GRU is not known"},
		{"tcn", "fp32", ": the workspace of the convolution convs.1 is not known"},
		{"vae", "amp-bf16", ": it raises RuntimeError: binary_cross_entropy is unsafe to autocast"},
		{"classifier", "bf16", ": it raises RuntimeError: the input is in another type than the weight"},
		{"missing", "fp32", "written.py has no function missing()"},
	} {
		_, err := runProgram(t, programOf(t, python, file, c.function), 16, c.precision, workload.PlainLoop)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "written.py") {
			t.Errorf("%s in %s: %v, want written.py:LINE%s", c.function, c.precision, err, c.want)
		}
	}
}

// TestProgramsAreBounded has programs that ask for more than there is refused.
func TestProgramsAreBounded(t *testing.T) {
	python := testmachine.Python(t)
	file := t.TempDir() + "/endless.py"
	const source = `
def loop():
    x = 0
    while True:
        x += 1

def deep():
    return deep()

def text():
    s = "a"
    for _ in range(60):
        s = s + s

def numbers():
    return [0] * 10**12

def reads():
    return open("/etc/passwd").read()
`
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for function, want := range map[string]string{
		"loop": "too much computation", "deep": "maximum recursion depth", "text": "too much computation", "numbers": "too much computation", "reads": "name 'open' is not defined",
	} {
		_, err := runProgram(t, programOf(t, python, file, function), 1, "fp32", workload.PlainLoop)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", function, err, want)
		}
	}
}

// measuredOf is what a line of own/peaks.jsonl measured, predicted.
func measuredOf(s *Process) []any {
	var allocated, reserved, end []int64
	for _, u := range s.Steps() {
		allocated, reserved, end = append(allocated, int64(u.PeakAllocated)), append(reserved, int64(u.PeakReserved)), append(end, int64(u.EndAllocated))
	}
	return []any{s.Parameters(), int64(s.unlimited.Parts[0].EndAllocated), allocated, reserved, end}
}

// programOf reads a file.
func programOf(t *testing.T, python, file, function string) *pymodule.Program {
	t.Helper()
	trees, err := exec.Command(python, "-I", "-c", pymodule.ProgramScript, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	name := file[strings.LastIndexByte(file, '/')+1:]
	made, err := pymodule.NewProgram(trees, strings.TrimSuffix(name, ".py"), function)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// predictProgram predicts a process of an H200 that runs in one function, whose names stay.
func predictProgram(t *testing.T, python string, c ownProcess) (*Process, error) {
	t.Helper()
	return runProgram(t, programOf(t, python, truthDir+"/own/"+c.File, c.Function), c.Batch, c.Precision, "")
}

// runProgram predicts steps of a program on an H200.
func runProgram(t *testing.T, made *pymodule.Program, batch int64, precision string, loop workload.LoopName) (*Process, error) {
	t.Helper()
	w, err := workload.Draft{}.WithoutModel()
	if err != nil {
		t.Fatal(err)
	}
	w.Batch, w.Precision, w.Loop.Name = batch, workload.Precision(precision), loop
	if w, err = w.WithProgram(made); err != nil {
		t.Fatal(err)
	}
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	return Run(w, card, Options{Budget: workbudget.New(workbudget.PerQuestion, nil)})
}
