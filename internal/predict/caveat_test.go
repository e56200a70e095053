package predict

import (
	"strings"
	"testing"

	"memorymark/internal/models/modelstest"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

func TestCaveats(t *testing.T) {
	for _, c := range []struct{ card, precision, want string }{
		{"t4", "fp32", ""},
		{"t4", "amp-fp16", ""},
		{"t4", "amp-bf16", "an NVIDIA Tesla T4 does not support bf16"},
		{"t4", "tf32", "does not support tf32"},
		{"v100", "fp32", "only in its CUDA 12.6 build"},
		{"v100", "bf16", "does not support bf16"},
		{"a10", "bf16", ""},
		{"b200", "tf32", ""},
	} {
		got := strings.Join(Caveats(workloadtest.Parse(t, `{`+smallBert+`,"precision":"`+c.precision+`"}`), workloadtest.Card(t, c.card)), "; ")
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s on %s: %q", c.precision, c.card, got)
		}
	}
}

// TestConvolvedInTF32: PyTorch's default for convolutions is said where fp32 is not what
// most people run, and only there.
func TestConvolvedInTF32(t *testing.T) {
	for _, c := range []struct {
		model, precision, card string
		said                   bool
	}{
		{"resnet", "fp32", "a10", true},
		{"vit", "fp32", "h200", true},
		{"resnet", "tf32", "a10", false},
		{"resnet", "amp-bf16", "a10", false},
		{"resnet", "fp32", "t4", false},
		{"gpt2", "fp32", "a10", false},
	} {
		got := strings.Join(Caveats(workloadtest.Parse(t, `{"model":"`+c.model+`","precision":"`+c.precision+`"}`), workloadtest.Card(t, c.card)), "; ")
		if strings.Contains(got, "precision tf32 predicts") != c.said {
			t.Errorf("%s in %s on %s: %q", c.model, c.precision, c.card, got)
		}
	}
}

// bf16 that is emulated is not as fast as fp16 that the card has.
func TestEmulatedTypesAreSlow(t *testing.T) {
	seconds := make(map[string]float64)
	for _, precision := range []string{"amp-fp16", "amp-bf16"} {
		s := mustRun(t, workloadtest.Parse(t, `{`+smallBert+`,"batch":256,"precision":"`+precision+`"}`), workloadtest.Card(t, "t4"))
		seconds[precision] = s.StepSeconds()
	}
	if seconds["amp-bf16"] <= seconds["amp-fp16"] {
		t.Errorf("%v", seconds)
	}
}

// TestRoutingCaveat wants what is assumed of experts to be said, of models that
// have them.
func TestRoutingCaveat(t *testing.T) {
	modelstest.NeedSource(t)
	const said = "any other routing takes the same memory"
	for model, has := range map[string]bool{"mixtral-8x7b": true, "qwen3-30b-a3b": true, "deepseek-v2-lite": true, "qwen3-0.6b": false} {
		got := strings.Join(Caveats(workloadtest.Parse(t, `{"model":"`+model+`"}`), workloadtest.Card(t, "h200")), "; ")
		if strings.Contains(got, said) != has {
			t.Errorf("%s: caveats are %q", model, got)
		}
	}
}

// A model of the user's own has no configuration.
func TestCaveatsOfOwnModel(t *testing.T) {
	if got := Caveats(&workload.Workload{Precision: workload.FP32}, workloadtest.Card(t, "a10")); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestOneEndIsSaid wants the assumption stated where a classifier looks for the ends
// of texts, and only there.
func TestOneEndIsSaid(t *testing.T) {
	modelstest.NeedSource(t)
	for model, want := range map[string]bool{"bart-large-mnli": true, "bart-large-cnn": false, "bert": false} {
		got := strings.Join(Caveats(workloadtest.Parse(t, `{"model":"`+model+`"}`), workloadtest.Card(t, "h200")), "; ")
		if strings.Contains(got, "one end-of-text token") != want {
			t.Errorf("%s: caveats are %q", model, got)
		}
	}
}
