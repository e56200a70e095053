package measure

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// countParameters builds each model on the meta device, where it takes no
// memory, as the prober builds it on a GPU.
const countParameters = `
import json, sys
from memorymark_prober import auto, catalog
for line in sys.stdin:
    w = json.loads(line)
    if w["recipe"].get("auto"):
        kind, config = auto.class_of(w["model_type"], w["architecture"]), auto.configuration(w["model_type"], w["config"], [])
        auto.choose_attention(config, kind, "sdpa")
        model = catalog.construct(w, kind, config, "meta")
    else:
        model, _ = catalog.build(w, "meta")
    print(sum(p.numel() for p in model.parameters()))
`

// TestCatalogParameters holds every model of the catalog, whatever its size, to
// what its PyTorch original is made of.
func TestCatalogParameters(t *testing.T) {
	card := workloadtest.Card(t, "h200")
	var predicted []int64
	var lines bytes.Buffer
	torchvision := hasTorchvision(t)
	models := slices.DeleteFunc(workload.Models(), func(m *workload.CatalogModel) bool {
		return m.Config.ModelType == "torchvision_resnet" && !torchvision
	})
	for _, m := range models {
		w := workloadtest.Parse(t, `{"model": "`+m.ID+`", "batch": 1, "precision": "bf16", "optimizer": "sgd"}`)
		p, err := predict.Predict(w, card, predict.Options{})
		if err != nil {
			t.Fatalf("%s: %v", m.ID, err)
		}
		line, err := buildable(w)
		if err != nil {
			t.Fatal(err)
		}
		predicted = append(predicted, p.Parameters)
		lines.Write(append(line, '\n'))
	}
	cmd := exec.Command(testmachine.Python(t), "-c", countParameters)
	cmd.Dir = "prober"
	cmd.Stdin, cmd.Stderr = &lines, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	built := json.NewDecoder(bytes.NewReader(out))
	for i, m := range models {
		var parameters int64
		if err := built.Decode(&parameters); err != nil {
			t.Fatalf("%s: %v", m.ID, err)
		}
		if predicted[i] != parameters {
			t.Errorf("%s: %d parameters are predicted, the model has %d", m.ID, predicted[i], parameters)
		}
		t.Logf("%s: %d", m.ID, parameters)
	}
}

// hasTorchvision reports whether torchvision is there, which transformers does
// not need.
func hasTorchvision(t *testing.T) bool {
	t.Helper()
	cmd := exec.Command(testmachine.Python(t), "-c", "import torchvision")
	cmd.Dir = "prober"
	return cmd.Run() == nil
}

// TestTorchvision trains a small ResNet of torchvision in both layouts.
func TestTorchvision(t *testing.T) {
	if !hasTorchvision(t) {
		t.Skip("torchvision is not installed")
	}
	s := start(t, SessionOptions{})
	for _, keys := range []string{`"batch": 2`, `"channels_last": true`, `"precision": "bf16", "loss": "mean"`} {
		r, o := trained(t, s, "torchvision", keys)
		if o.Failure != nil || len(o.Steps) != 2 || r.Parameters != 4_910_922 {
			t.Errorf("%s: %v, %d parameters", keys, o.Failure, r.Parameters)
		}
	}
	if _, o := trained(t, s, "torchvision", `"checkpointing": true`); o.Failure == nil || !strings.Contains(o.Failure.Message, "does not support gradient checkpointing") {
		t.Errorf("checkpointing: %v", o.Failure)
	}
}

// buildable is a workload with its recipe, as a probe hands it on.
func buildable(w *workload.Workload) ([]byte, error) {
	message, err := workloadMessage(w, nil)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]json.RawMessage)
	if err := json.Unmarshal(message, &keys); err != nil {
		return nil, err
	}
	recipe, err := newRecipe(w, nil)
	if err != nil {
		return nil, err
	}
	if keys["recipe"], err = json.Marshal(recipe); err != nil {
		return nil, err
	}
	return json.Marshal(keys)
}
