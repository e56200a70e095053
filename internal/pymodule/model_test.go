package pymodule_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/models/modelstest"
	"memorymark/internal/predict"
	"memorymark/internal/pymodule"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

const truth = "../../testdata/truth/"

// h200 is the card of the recordings.
var h200, _ = gpu.Find("h200")

// families are those whose own source is evaluated.
var families = []string{
	"bart", "bert", "deberta-v2", "deepseek_v2", "distilbert", "electra", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "llama", "mistral",
	"mixtral", "modernbert", "olmo2", "opt", "phi3", "qwen2", "qwen3", "qwen3_moe", "roberta", "smollm3", "t5", "whisper", "xlm-roberta",
}

// library is the source of transformers that make models fetched.
func library(tb testing.TB) *pymodule.Library {
	tb.Helper()
	modelstest.NeedSource(tb)
	trees, err := pymodule.EmbeddedTrees()
	if err != nil {
		tb.Fatal(err)
	}
	return pymodule.NewLibrary(trees)
}

// recording is a process of the families: what it ran, and what it asked for.
type recording struct {
	ID       string
	Workload json.RawMessage
	Requests []int64 // sizes, or minus the number, from 1, of the allocation that is freed
	Steps    int     // 2 if it is not said

	workload *workload.Workload
}

// recordings reads JSON lines, and keeps those that the evaluator is for.
func recordings(t *testing.T, path string) []recording {
	t.Helper()
	var out []recording
	for _, c := range tracetest.Lines[recording](t, path) {
		w := workloadtest.Parse(t, c.Workload)
		if slices.Contains(families, w.Config.ModelType) && w.Adapter == nil && w.Quantize == workload.NotQuantized {
			c.workload = w
			out = append(out, c)
		}
	}
	return out
}

// TestRecorded compares processes of models that are evaluated with what was recorded
// and with those of models written by hand: every allocation and every free.
func TestRecorded(t *testing.T) {
	l := library(t)
	for _, c := range recordings(t, truth+"recorded.jsonl") {
		t.Run(c.ID, func(t *testing.T) {
			got := evaluated(t, l, &c)
			compare(t, &c, got, tracetest.Trace(t, truth+"recorded/"+c.ID+".pickle.xz"))
			byHand, err := predict.Run(c.workload, h200, predict.Options{Steps: 2, Build: models.New})
			if err != nil {
				t.Fatal(err)
			}
			same(t, events(got), events(byHand.Requests()))
		})
	}
}

// same fails at the first event that is another by hand.
func same(t *testing.T, evaluated, byHand []string) {
	t.Helper()
	for i := range max(len(evaluated), len(byHand)) {
		if i >= len(evaluated) || i >= len(byHand) || evaluated[i] != byHand[i] {
			t.Fatalf("event %d of %d is %q, and %q by hand", i, len(byHand), evaluated[min(i, len(evaluated)-1)], byHand[min(i, len(byHand)-1)])
		}
	}
}

// TestFamilies compares them with recordings of small models in every precision, under
// both kinds of attention, with masks and without, checkpointed or not, with each head.
func TestFamilies(t *testing.T) {
	l := library(t)
	paths, err := filepath.Glob(truth + "families/*.jsonl.xz")
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no recordings", err)
	}
	for _, path := range append(paths, truth+"requests.jsonl.xz") {
		for _, c := range recordings(t, path) {
			t.Run(c.ID, func(t *testing.T) {
				compare(t, &c, evaluated(t, l, &c), tracetest.Requests(c.Requests))
			})
		}
	}
}

// evaluated is what the process asks for.
func evaluated(t *testing.T, l *pymodule.Library, c *recording) *trace.Trace {
	t.Helper()
	card := h200
	if id := c.workload.GPU; id != "" && id != "h200" {
		card = workloadtest.Card(t, id)
	}
	p, err := predict.Run(c.workload, card, predict.Options{Steps: cmp.Or(c.Steps, 2), Build: l.New})
	if err != nil {
		t.Fatal(err)
	}
	return p.Requests()
}

// compare fails where a process parts from its recording. Autocast drops its casts in an
// order that is not to be known.
func compare(t *testing.T, r *recording, got, want *trace.Trace) {
	t.Helper()
	c := trace.Compare(got, want)
	if len(c.Reordered) > 0 && !strings.HasPrefix(string(r.workload.Precision), "amp") {
		t.Errorf("the frees from event %d on have another order", c.Reordered[0])
	}
	if !c.Differ() && c.Beyond == [2]int{} {
		return
	}
	at := [2]int{c.Before, c.Before}
	if c.Differ() {
		at = c.Stretches[0].From
	}
	var around strings.Builder
	for i := -min(6, at[0], at[1]); i < 8; i++ {
		fmt.Fprintf(&around, "\n%5d  evaluated %-20s recorded %s", at[1]+i, request(c.Requests[0], at[0]+i), request(c.Requests[1], at[1]+i))
	}
	t.Errorf("request %d of %d differs%s", at[1], len(c.Requests[1]), around.String())
}

func request(list []trace.AllocatorRequest, i int) string {
	switch {
	case i >= len(list):
		return ""
	case list[i].Free:
		return fmt.Sprintf("-#%d %d", list[i].ID, list[i].Size)
	}
	return fmt.Sprintf("+#%d %d", list[i].ID, list[i].Size)
}

// events are what a process asks for, written out.
func events(tr *trace.Trace) []string {
	out := make([]string, len(tr.Events))
	for i, e := range tr.Events {
		out[i] = fmt.Sprintf("%d #%d of %d bytes", e.Action, e.ID, e.Size)
	}
	return out
}
