package workload

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/models/modelstest"
)

func TestDefaults(t *testing.T) {
	w, err := Parse([]byte(`{"model":"bert"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Model, want.Config = "bert", w.Config
	if diff := cmp.Diff(want, w, cmp.AllowUnexported(hfconfig.Config{})); diff != "" {
		t.Error(diff)
	}
	if w.Batch != 16 || w.Sequence != 128 || w.Config.Architecture != "BertForSequenceClassification" {
		t.Errorf("%+v", *w)
	}
}

func TestSeveralProblems(t *testing.T) {
	_, err := Parse([]byte(`{"model":"bert","batch":0,"sequence":0,"precision":"fp8"}`))
	var wrong *invalid.Error
	if !errors.As(err, &wrong) || len(wrong.Problems) != 3 {
		t.Fatalf("want 3 problems: %v", err)
	}
	for _, p := range wrong.Problems {
		var problem *invalid.Problem
		if !errors.As(p, &problem) || !strings.HasPrefix(p.Error(), problem.Key+" is ") {
			t.Errorf("the problem %q does not say which key it is about: %+v", p, problem)
		}
	}
}

// A null is absent; ids of the Hub are known too; overrides replace keys.
func TestModel(t *testing.T) {
	w, err := Parse([]byte(`{"model":"openai-community/GPT2","batch":null,"config":{"n_layer":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	if intOf(w.Config, "n_layer") != 2 || intOf(w.Config, "n_head") != 12 || w.Model != "gpt2" || w.Batch != 16 {
		t.Errorf("%+v", w)
	}
	original, err := FindModel("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	if n := intOf(original.Config, "n_layer"); n != 12 {
		t.Errorf("the catalog was changed: %d layers", n)
	}
}

// Images have the size that the model takes, unless another is given.
func TestImageSize(t *testing.T) {
	modelstest.NeedSource(t)
	for text, want := range map[string]int64{
		`{"model":"vit"}`: 224, `{"model":"vit","config":{"image_size":384}}`: 384,
		`{"model":"vit","image":384}`: 384, `{"model":"resnet"}`: 224,
		`{"model":"dinov2-small"}`: 224, `{"config":{"model_type":"deit","image_size":384}}`: 384, // of 518, takes any; takes no other
	} {
		if w, err := Parse([]byte(text)); err != nil || w.Image != want {
			t.Errorf("%s: %v, %v, want %d", text, w, err, want)
		}
	}
}

func intOf(c *hfconfig.Config, key string) (n int64) {
	c.Int(key, &n)
	return n
}

func TestDraft(t *testing.T) {
	d := Draft{}
	for key, text := range map[string]string{"model": "bert", "batch": "8", "checkpointing": "true", "id": "7", "precision": "bf16", "optimizer": "AdamW", "config": `{"num_hidden_layers":2}`} {
		d.Set(key, text)
	}
	w, err := d.Workload()
	if err != nil {
		t.Fatal(err)
	}
	if w.Batch != 8 || !w.Checkpointing || w.ID != "7" || w.Precision != BF16 || w.Optimizer != AdamW {
		t.Errorf("%+v", *w)
	}
	if n := intOf(w.Config, "num_hidden_layers"); n != 2 {
		t.Errorf("%d layers", n)
	}
	d.Set("batch", "many")
	if _, err := d.Workload(); err == nil || !strings.Contains(err.Error(), `batch is "many"; it must be a whole number`) {
		t.Error(err)
	}
}

func parsed(t *testing.T, text string) *Workload {
	t.Helper()
	w, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w
}

func asJSON(t *testing.T, w *Workload) string {
	t.Helper()
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A workload's draft makes the same workload again, and so does a changed draft.
func TestDraftOfWorkload(t *testing.T) {
	for _, text := range []string{
		`{"model": "gpt2", "lengths": [10, 20, 300], "attention_mask": "none"}`,
		`{"model": "gpt2", "lengths": [10, 20, 300], "packing": true, "sequence": 128}`,
		`{"model": "gpt2", "lengths": [10, 20, 300]}`,
		`{"model": "gpt2", "quantize": "nf4", "adapter": 8}`,
		`{"model": "gpt2", "optimizer": "adafactor", "loop": "trainer", "clip_grad_norm": false}`,
		`{"model": "clip"}`,
		`{"model": "resnet", "channels_last": true, "limit_gib": 7.5}`,
		`{"config": {"model_type": "bert", "architectures": ["BertModel"]}, "loop": {"outputs": "kept"}}`,
	} {
		w := parsed(t, text)
		d, err := w.Draft(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := d.Workload()
		if err != nil || asJSON(t, w) != asJSON(t, again) {
			t.Errorf("%s is %s, its draft %s: %v", text, asJSON(t, w), asJSON(t, again), err)
		}
	}
	for kept, want := range map[string]Precision{"precision": FP32, "batch": AMPBF16} {
		d, err := parsed(t, `{"model": "gpt2", "adapter": 8}`).Draft([]string{kept})
		if err != nil {
			t.Fatal(err)
		}
		d.Set("quantize", "nf4")
		if w, err := d.Workload(); err != nil || w.Precision != want {
			t.Errorf("with %s kept it is in %s: %v", kept, w.Precision, err)
		}
	}
}

func TestUseConfig(t *testing.T) {
	d := Draft{"model": json.RawMessage(`"x/config.json"`), "config": json.RawMessage(`{"num_hidden_layers":3}`)}
	if err := d.UseConfig([]byte(`{"model_type":"bert","num_hidden_layers":24,"hidden_size":1024,"num_attention_heads":16}`)); err != nil {
		t.Fatal(err)
	}
	w, err := d.Workload()
	if err != nil {
		t.Fatal(err)
	}
	if intOf(w.Config, "num_hidden_layers") != 3 || intOf(w.Config, "hidden_size") != 1024 {
		t.Errorf("%+v", w.Config)
	}
}

// Every model of the catalog is a workload, and described.
func TestCatalog(t *testing.T) {
	modelstest.NeedSource(t)
	seen := make(map[string]bool)
	for _, m := range Models() {
		if seen[m.ID] || m.ID != strings.ToLower(m.ID) {
			t.Errorf("%q is there twice or not in lower case", m.ID)
		}
		seen[m.ID] = true
		if m.Name == "" || m.Description == "" || m.Type != "nlp" && m.Type != "vision" && m.Type != "speech" {
			t.Errorf("%s is not described: %+v", m.ID, *m)
		}
		if _, err := Parse([]byte(`{"model":"` + m.ID + `"}`)); err != nil {
			t.Errorf("%s: %v", m.ID, err)
		}
	}
	for _, id := range []string{"bert", "gpt2", "resnet", "vit", "llama-3.2-1b", "lm-small", "lm-2.7b"} {
		if !seen[id] {
			t.Errorf("%s is missing", id)
		}
	}
}

func TestReadJSON(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ids        []string // "!" for one that is wrong
	}{
		{"nothing", " \n", nil},
		{"one", `{"id":"a"}`, []string{"a"}},
		{"one over several lines", "{\n\"id\":\n\"a\"\n}\n", []string{"a"}},
		{"lines", "{\"id\":\"a\"}\n\n{\"id\":\"b\"}\n", []string{"a", "b"}},
		{"a wrong line", "{\"id\":\"a\"}\n{\"id\":\n{\"id\":\"c\"}", []string{"a", "!", "c"}},
		{"a list", `[{"id":"a"},{"id":"b"},3]`, []string{"a", "b", "!"}},
	} {
		t.Run(c.name, func(t *testing.T) { checkEntries(t, ReadJSON([]byte(c.text)), c.ids) })
	}
}

func TestReadYAML(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ids        []string
	}{
		{"one", "id: a\nbatch: 8\n", []string{"a"}},
		{"documents", "id: a\n---\nid: b\n", []string{"a", "b"}},
		{"a list", "- id: a\n- id: b\n- 3\n", []string{"a", "b", "!"}},
		{"key twice", "id: a\nid: b\n", []string{"!"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries, err := ReadYAML([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			checkEntries(t, entries, c.ids)
		})
	}
	if _, err := ReadYAML([]byte("id: [")); err == nil {
		t.Error("no YAML was taken")
	}
	entries, err := ReadYAML([]byte("model: gpt2\nbatch: 4\nclip_grad_norm: true\nlimit_gib: 14.6\nconfig:\n  n_layer: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := entries[0].Draft.Workload()
	if err != nil || w.Batch != 4 || !w.ClipGradNorm || w.LimitGiB != 14.6 {
		t.Errorf("%+v, %v", w, err)
	}
}

func checkEntries(t *testing.T, entries []Entry, ids []string) {
	t.Helper()
	var got []string
	for _, e := range entries {
		id := e.Draft.Text("id")
		if e.Err != nil {
			id = "!"
		}
		got = append(got, id)
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Error(diff)
	}
}

// No input makes it panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"bert","batch":8,"config":{"num_hidden_layers":2}}`))
	f.Add([]byte("- model: gpt2\n  precision: bf16\n- {model: t5-small}\n"))
	f.Add([]byte(`{"config":{"model_type":"resnet","depths":[1,2],"hidden_sizes":[0]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries := ReadJSON(data)
		if more, err := ReadYAML(data); err == nil {
			entries = append(entries, more...)
		}
		for _, e := range entries {
			if e.Err == nil {
				if w, err := e.Draft.Workload(); (w == nil) == (err == nil) {
					t.Error("a workload and an error, or neither")
				}
			}
		}
	})
}

// A model of too many layers is refused before anything walks them.
func TestTooManyLayers(t *testing.T) {
	for _, config := range []string{
		`"model_type":"resnet","depths":[400,400,400,400]`,
		`"model_type":"resnet","depths":[` + strings.Repeat("1,", 5000) + `1]`,
		`"model_type":"t5","num_decoder_layers":1001`,
	} {
		if _, err := Parse([]byte(`{"config":{` + config + `}}`)); err == nil || !strings.Contains(err.Error(), "at most 1000") {
			t.Errorf("%.80s: %v", config, err)
		}
	}
}

func TestLoop(t *testing.T) {
	for text, want := range map[string]TrainingLoop{
		`"plain"`:                             {PlainLoop, OutputsDropped, ZeroAfterStep, BuildOnDevice, NoScaler},
		`"lightning"`:                         {LightningLoop, OutputsDropped, ZeroBeforeBackward, BuildOnCPU, NoScaler},
		`{"outputs": "kept", "build": "cpu"}`: {"", OutputsKept, ZeroAfterStep, BuildOnCPU, NoScaler},
		`{"zero_grad": "before-forward"}`:     {"", OutputsDropped, ZeroBeforeForward, BuildOnDevice, NoScaler},
		`{"scaler": "grad"}`:                  {"", OutputsDropped, ZeroAfterStep, BuildOnDevice, GradScaler},
	} {
		w, err := Parse([]byte(`{"model": "bert", "loop": ` + text + `}`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if w.Loop != want {
			t.Errorf("%s is %+v, want %+v", text, w.Loop, want)
		}
		data, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(data); err != nil || again.Loop != want {
			t.Errorf("%s written and read again is %+v, %v", text, again, err)
		}
	}
}

// PyTorch's Adafactor loops over parameters unless foreach=True; other
// optimizers take all at once.
func TestImplementationByDefault(t *testing.T) {
	for keys, want := range map[string]Impl{
		`"optimizer": "adafactor"`:                              Loop,
		`"optimizer": "adafactor", "optimizer_impl": "foreach"`: Foreach,
		`"optimizer": "adamw"`:                                  Foreach,
		`"optimizer": "rmsprop"`:                                Foreach,
	} {
		w, err := Parse([]byte(`{"model": "bert", ` + keys + `}`))
		if err != nil || w.OptimizerImpl != want {
			t.Errorf("%s: %v, %v", keys, w, err)
		}
	}
}
