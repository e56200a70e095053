package trace

import "testing"

func TestLayer(t *testing.T) {
	for _, test := range []struct {
		module, list string
		number       int
		any          string
	}{
		{"transformer.h.3.attn", "transformer.h", 3, "transformer.h.*.attn"},
		{"layers.11", "layers", 11, "layers.*"},
		{"encoder.stages.2.layers.0.conv", "encoder.stages", 2, "encoder.stages.*.layers.*.conv"},
		{"stages.1.2", "stages", 1, "stages.*.*"},
		{"lm_head", "", 0, "lm_head"},
		{"conv1.weight", "", 0, "conv1.weight"},
		{"", "", 0, ""},
	} {
		list, number, ok := Layer(test.module)
		if list != test.list || number != test.number || ok != (test.list != "") || AnyLayer(test.module) != test.any {
			t.Errorf("%q: layer %d of %q, %v; any is %q", test.module, number, list, ok, AnyLayer(test.module))
		}
	}
}
