package workload

import (
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
