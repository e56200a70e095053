package engine

import (
	"testing"

	"memorymark/internal/evidence"
	"memorymark/internal/workload/workloadtest"
)

// TestChoose has every engine asked for, with keys that decide and with every means.
func TestChoose(t *testing.T) {
	const (
		auto, predicted   = evidence.Auto, evidence.Predicted
		emulated, measure = evidence.Emulated, evidence.Measured
	)
	means := []Means{
		{},
		{Device: true},
		{Emulation: true},
		{Emulation: true, Device: true},
		{Card: true},
		{Card: true, Emulation: true},
		{Card: true, Emulation: true, Device: true},
	}
	for _, c := range []struct {
		name     string
		workload string
		modelled bool
		want     [7]evidence.Engine // of auto, by means
	}{
		{"plain", `{"model": "bert"}`, true, [7]evidence.Engine{predicted, predicted, predicted, predicted, measure, measure, measure}},
		{"many ranks", `{"model": "bert", "parallel": {"kind": "ddp", "gpus": 8}}`, true, [7]evidence.Engine{predicted, predicted, predicted, predicted, predicted, predicted, predicted}},
		{"lengths", `{"model": "bert", "lengths": {"64": 100, "128": 20}}`, true, [7]evidence.Engine{predicted, predicted, predicted, predicted, predicted, predicted, predicted}},
		{"adapter", `{"model": "gpt2", "adapter": {"kind": "lora", "rank": 8}}`, true, [7]evidence.Engine{predicted, predicted, predicted, predicted, measure, measure, measure}},
		{"tf32", `{"model": "resnet", "precision": "tf32"}`, true, [7]evidence.Engine{predicted, predicted, predicted, predicted, measure, measure, measure}},
		{"not modelled", `{"model": "bert"}`, false, [7]evidence.Engine{predicted, measure, emulated, emulated, measure, measure, measure}},
	} {
		w := workloadtest.Parse(t, c.workload)
		for i, has := range means {
			for _, asked := range []evidence.Engine{auto, ""} {
				if got := Choose(asked, w, c.modelled, has); got != c.want[i] {
					t.Errorf("%s with %+v: %s, want %s", c.name, has, got, c.want[i])
				}
			}
			for _, asked := range []evidence.Engine{predicted, emulated, measure} {
				if got := Choose(asked, w, c.modelled, has); got != asked {
					t.Errorf("%s with %+v: %s where %s was asked for", c.name, has, got, asked)
				}
			}
		}
	}
}
