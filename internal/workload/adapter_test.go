package workload

import (
	"strings"
	"testing"
)

func TestAdapter(t *testing.T) {
	w, err := Parse([]byte(`{"model":"llama-3.2-1b","adapter":{"rank":8,"targets":"q_proj,v_proj","alpha":32},"quantize":"nf4"}`))
	if err != nil {
		t.Fatal(err)
	}
	if w.Adapter.Kind != LoRA || w.Adapter.Rank != 8 || len(w.Adapter.Targets) != 2 || w.Precision != AMPBF16 {
		t.Errorf("%+v in %s", *w.Adapter, w.Precision)
	}
	if w, err = Parse([]byte(`{"model":"gpt2","adapter":8}`)); err != nil || w.Adapter == nil || w.Adapter.Rank != 8 {
		t.Errorf("%+v, %v", w, err)
	}
	if w, err = Parse([]byte(`{"model":"gpt2","adapter":0}`)); err != nil || w.Adapter != nil {
		t.Errorf("%+v, %v", w, err)
	}
	d := make(Draft)
	d.Set("model", "gpt2")
	d.SetField("adapter", Field{Name: "rank", Kind: Whole}, "4")
	d.SetField("adapter", Field{Name: "dora", Kind: Switch}, "true")
	if w, err = d.Workload(); err != nil || w.Adapter.Rank != 4 || !w.Adapter.DoRA {
		t.Errorf("%+v, %v", w, err)
	}
}

// What is wrong with an adapter says what is allowed.
func TestInvalidAdapter(t *testing.T) {
	for text, want := range map[string]string{
		`"adapter":{"targets":["a"` + strings.Repeat(`,"a"`, maxNames) + `]}`: "there are 101 targets and 0 modules_to_save",
		`"adapter":{"rank":0}`:                                     "rank is 0; it must be from 1 to",
		`"adapter":{"kind":"ia3"}`:                                 `kind is "ia3"; it must be lora`,
		`"adapter":{"dropout":1}`:                                  "dropout is 1; it must be at least 0 and below 1",
		`"adapter":{"targets":["all-linear","q_proj"]}`:            "it must be that alone, or names",
		`"adapter":{"task_type":"X"}`:                              "it must be one of SEQ_CLS",
		`"adapter":{"r":8}`:                                        `unknown field "r"`,
		`"adapter":-8`:                                             "rank is -8; it must be from 1 to",
		`"adapter":"lora"`:                                         `adapter is "lora"; it must be a rank, or an object with one`,
		`"adapter":{"dropout":"nan"}`:                              "its dropout must not be a string",
		`"quantize":"nf4"`:                                         "it needs an adapter",
		`"quantize":"fp4","adapter":{}`:                            "none, nf4, nf4-double, int8",
		`"quantize":"nf4","adapter":{"dora":true}`:                 "not modelled with DoRA",
		`"adapter":{},"config":{"model_type":"vit"},"model":"vit"`: "PEFT has no default targets for a vit",
	} {
		if !strings.Contains(text, `"model"`) {
			text = `"model":"llama-3.2-1b",` + text
		}
		if _, err := Parse([]byte("{" + text + "}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", text, err, want)
		}
	}
}
