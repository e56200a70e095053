package predict

import (
	"fmt"
	"strings"
	"testing"

	"memorymark/internal/workload/workloadtest"
)

// network is a model that others timed in a forward pass (networks.csv of
// internal/steptime/testdata/kernels, which says by whom).
type network struct {
	card, model, image, batch string
	channelsLast              bool
	milliseconds              float64
}

func readNetworks(t *testing.T) (out []network) {
	t.Helper()
	cards := map[string]string{
		"amp-nchw-pt240-cu124-rtx3090": "rtx-3090", "amp-nhwc-pt240-cu124-rtx3090": "rtx-3090", "amp-nchw-pt291-cu128-4090": "rtx-4090", "amp-nchw-pt291-cu130-5090": "rtx-5090",
	}
	for _, c := range timedByOthers(t, "networks.csv.xz") {
		if len(c) < 5 || cards[c[0]] == "" {
			continue
		}
		n := network{card: cards[c[0]], model: c[1], image: c[2], batch: c[3], channelsLast: strings.Contains(c[0], "nhwc")}
		if _, err := fmt.Sscan(c[4], &n.milliseconds); err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// networkConfigs are the configurations of some of the networks, as transformers writes them.
func networkConfigs() map[string]string {
	out := make(map[string]string)
	for name, n := range map[string][4]int{"tiny_patch16": {192, 12, 3, 16}, "small_patch16": {384, 12, 6, 16}, "base_patch16": {768, 12, 12, 16}, "large_patch16": {1024, 24, 16, 16}, "base_patch32": {768, 12, 12, 32}} {
		out["vit_"+name+"_224"] = fmt.Sprintf(`{"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": %d, "num_hidden_layers": %d,
			"num_attention_heads": %d, "intermediate_size": %d, "patch_size": %d}`, n[0], n[1], n[2], 4*n[0], n[3])
	}
	for name, depths := range map[string]string{"resnet18": "2, 2, 2, 2", "resnet34": "3, 4, 6, 3", "resnet50": "3, 4, 6, 3", "resnet101": "3, 4, 23, 3", "resnet152": "3, 8, 36, 3"} {
		kind, sizes := "bottleneck", "256, 512, 1024, 2048"
		if name == "resnet18" || name == "resnet34" {
			kind, sizes = "basic", "64, 128, 256, 512"
		}
		out[name] = fmt.Sprintf(`{"model_type": "resnet", "architectures": ["ResNetForImageClassification"], "layer_type": %q, "depths": [%s], "hidden_sizes": [%s]}`, kind, depths, sizes)
	}
	for name, sizes := range map[string][2]string{"tiny": {"3, 3, 9, 3", "96, 192, 384, 768"}, "small": {"3, 3, 27, 3", "96, 192, 384, 768"}, "base": {"3, 3, 27, 3", "128, 256, 512, 1024"}} {
		out["convnext_"+name] = fmt.Sprintf(`{"model_type": "convnext", "architectures": ["ConvNextForImageClassification"], "depths": [%s], "hidden_sizes": [%s]}`, sizes[0], sizes[1])
	}
	return out
}

// networkErrors is how far off forward passes under autocast are that others timed on
// cards that were not measured here, by card.
func networkErrors(t *testing.T) map[string]lineErrors {
	t.Helper()
	configs, out := networkConfigs(), make(map[string]lineErrors)
	for _, n := range readNetworks(t) {
		if configs[n.model] == "" || n.channelsLast && !strings.HasPrefix(n.model, "resnet") {
			continue
		}
		w := workloadtest.Parse(t, fmt.Sprintf(`{"config": %s, "batch": %s, "image": %s, "phase": "infer", "mode": "eval", "precision": "amp-fp16", "channels_last": %t}`, configs[n.model], n.batch, n.image, n.channelsLast))
		found := workloadtest.Card(t, n.card)
		card := *found
		card.Memory.Bytes = 1 << 40 // timm scores without keeping what a loss needs
		s := mustRun(t, w, &card)
		out[n.card] = append(out[n.card], s.timed(n.model+" at "+n.image, 1e-3*n.milliseconds))
	}
	return out
}

// TestNetworks holds these errors to what they were.
func TestNetworks(t *testing.T) {
	all := networkErrors(t)
	for card, most := range map[string][2]float64{"rtx-3090": {0.04, 0.1}, "rtx-4090": {0.075, 0.15}, "rtx-5090": {0.05, 0.12}} {
		e := all[card].sum()
		t.Logf("%s: %+v", card, e)
		if e.Cases < 30 || e.Median > most[0] || e.Percentile95 > most[1] {
			t.Errorf("%s: half of %d are within %.3f, 95 %% within %.3f; it was better", card, e.Cases, e.Median, e.Percentile95)
		}
	}
}
