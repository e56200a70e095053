package predict

import (
	"testing"

	"memorymark/internal/workload/workloadtest"
)

// TestTorchvisionParameters holds torchvision's ResNets to the numbers that it
// publishes with their weights (ResNet50_Weights.IMAGENET1K_V1.meta["num_params"]).
func TestTorchvisionParameters(t *testing.T) {
	card := workloadtest.Card(t, "h200")
	for id, want := range map[string]int64{
		"resnet18": 11_689_512, "resnet34": 21_797_672, "resnet50": 25_557_032, "resnet101": 44_549_160, "resnet152": 60_192_808,
	} {
		w := workloadtest.Parse(t, `{"model": "`+id+`", "batch": 1}`)
		p := mustPredict(t, w, card)
		if p.Parameters != want {
			t.Errorf("%s has %d parameters, %d are published", id, p.Parameters, want)
		}
	}
}
