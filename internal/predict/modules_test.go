package predict

import (
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/models/modelstest"
	"memorymark/internal/workload/workloadtest"
)

// Nearly all of a step belongs to modules, also what backward and the
// optimizer make, and what a checkpointed layer makes again.
func TestModules(t *testing.T) {
	modelstest.NeedSource(t)
	for _, more := range []string{``, `,"checkpointing":true`, `,"optimizer_impl":"fused"`, `,"precision":"amp-bf16"`, `,"optimizer":"sgd-momentum"`} {
		for _, model := range smallModels {
			if strings.Contains(more, "checkpointing") && (strings.Contains(model, "resnet") || strings.Contains(model, "convnext") || strings.Contains(model, "opt-")) {
				continue // not with these
			}
			text := `{` + model + more + `}`
			w := workloadtest.Parse(t, text)
			p := mustPredict(t, w, workloadtest.Card(t, "h200"))
			var sum bytesize.Bytes
			for i, m := range p.Modules {
				if sum += m.Bytes; i > 0 && m.Bytes > p.Modules[i-1].Bytes {
					t.Errorf("%s: %s is listed after what is smaller", text, m.Module)
				}
			}
			b := &p.Breakdown
			all := b.Total - b.Context - b.Fragmentation - b.Rounding
			if sum > all || sum < (all-b.Workspaces-b.Input)*9/10 {
				t.Errorf("%s: modules hold %v of %v", text, sum, all)
			}
		}
	}
}

func TestBreakdownModule(t *testing.T) {
	for path, want := range map[string]string{
		"transformer.h.3.attn": "transformer.h.3", "transformer.wte": "transformer.wte", "lm_head": "lm_head",
		"resnet.encoder.stages.2.layers.0.shortcut": "resnet.encoder.stages.2",
	} {
		if got := breakdownModule(path); got != want {
			t.Errorf("%s counts under %s, want %s", path, got, want)
		}
	}
}
