package pymodule_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"memorymark/internal/measure/measuretest"
	"memorymark/internal/predict"
	"memorymark/internal/pymodule"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
)

const truth = "../../testdata/truth/"

// h200 is the card of the recordings.
var h200 = torch.Device{SMs: 132, ThreadsPerSM: 2048, Major: 9, Minor: 0}

// families are those whose own source makes the process that the model written by
// hand makes.
var families = []string{"gpt2", "qwen3", "llama", "qwen2", "mistral", "bert", "t5", "roberta", "distilbert", "xlm-roberta", "electra", "gpt_neox", "opt", "phi3", "olmo2", "smollm3", "gemma", "gemma2", "gemma3_text", "bart", "deberta-v2", "modernbert", "mixtral", "qwen3_moe", "deepseek_v2", "whisper"}

// sharedModules are what the source of models imports.
var sharedModules = []string{
	"masking_utils", "cache_utils", "activations", "modeling_layers", "modeling_outputs", "modeling_rope_utils", "integrations.sdpa_attention",
	"loss.loss_utils",
}

// library is the source of transformers of the tests' Python, which is not imported.
func library(tb testing.TB) *pymodule.Library {
	tb.Helper()
	python := measuretest.Python(tb)
	find := exec.Command(python, "-c", "import importlib.util; print(importlib.util.find_spec('transformers').submodule_search_locations[0])")
	folder, err := find.Output()
	if err != nil {
		tb.Skip("NOT TESTED: the Python of the tests has no transformers")
	}
	modules := []string{filepath.Dir(strings.TrimSpace(string(folder)))}
	for _, name := range sharedModules {
		modules = append(modules, "transformers."+name)
	}
	for _, f := range families {
		for _, part := range []string{"modeling", "configuration"} {
			modules = append(modules, fmt.Sprintf("transformers.models.%[1]s.%[2]s_%[1]s", folderOf(f), part))
		}
	}
	run := exec.Command(python, append([]string{"-c", pymodule.Script}, modules...)...)
	run.Stderr = os.Stderr
	data, err := run.Output()
	if err != nil {
		tb.Fatal(err)
	}
	trees, err := pymodule.ReadTrees(data)
	if err != nil {
		tb.Fatal(err)
	}
	return pymodule.NewLibrary(trees)
}

// folderOf is where the source of a family is.
func folderOf(family string) string {
	return strings.ReplaceAll(strings.TrimSuffix(family, "_text"), "-", "_")
}

// recorded are the workloads of recordings of the families.
func recorded(t *testing.T) map[string]*workload.Workload {
	t.Helper()
	f, err := os.Open(truth + "recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := make(map[string]*workload.Workload)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			ID       string
			Workload json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		w, err := workload.Parse(line.Workload)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(families, w.Config.ModelType) {
			out[line.ID] = w
		}
	}
	return out
}

// TestRecorded compares processes of models that are evaluated with those of models
// written by hand, which are what was recorded: every allocation and every free.
func TestRecorded(t *testing.T) {
	l := library(t)
	for id, w := range recorded(t) {
		t.Run(id, func(t *testing.T) {
			compare(t, l, w)
		})
	}
}

// TestFamilies does so with small models in every precision, under both kinds of
// attention, with masks and without, checkpointed or not, with each head.
func TestFamilies(t *testing.T) {
	l := library(t)
	paths, err := filepath.Glob(truth + "families/*.jsonl.xz")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no recordings", err)
	}
	for _, path := range paths {
		for id, w := range workloads(t, path) {
			t.Run(id, func(t *testing.T) { compare(t, l, w) })
		}
	}
}

// workloads are those of a compressed file that the evaluator is for.
func workloads(t *testing.T, path string) map[string]*workload.Workload {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := xz.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*workload.Workload)
	for lines := json.NewDecoder(r); lines.More(); {
		var line struct {
			ID       string
			Workload json.RawMessage
		}
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		w, err := workload.Parse(line.Workload)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(families, w.Config.ModelType) && w.Adapter == nil && w.Quantize == workload.NotQuantized {
			out[line.ID] = w
		}
	}
	return out
}

// compare runs a workload both ways.
func compare(t *testing.T, l *pymodule.Library, w *workload.Workload) {
	t.Helper()
	want, err := predict.Run(w, h200, 2)
	if err != nil {
		t.Fatal(err)
	}
	got, err := predict.RunBuilt(w, h200, 2, l.New)
	if err != nil {
		t.Fatal(err)
	}
	a, b := events(got.Trace()), events(want.Trace())
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			var around strings.Builder
			for j := max(i-6, 0); j < min(i+8, max(len(a), len(b))); j++ {
				fmt.Fprintf(&around, "\n%5d  evaluated %-50s by hand %s", j, at(a, j), at(b, j))
			}
			t.Fatalf("event %d of %d differs%s", i, len(b), around.String())
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// events are what a process asks for, written out.
func events(tr *trace.Trace) []string {
	out := make([]string, len(tr.Events))
	for i, e := range tr.Events {
		who := ""
		if frames := tr.Stacks.Frames(e.Stack); len(frames) > 0 {
			who = frames[0].Name
		}
		_ = who
		out[i] = fmt.Sprintf("%d #%d %d stream %d", e.Action, e.ID, e.Size, e.Stream)
	}
	return out
}
