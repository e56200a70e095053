package measure

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/measure/measuretest"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// countParameters builds each model on the meta device, where it takes no
// memory, as the prober builds it on a GPU.
const countParameters = `
import json, sys
from memorymark_prober import catalog
for line in sys.stdin:
    model, _ = catalog.build(json.loads(line), "meta")
    print(sum(p.numel() for p in model.parameters()))
`

// TestCatalogParameters holds every model of the catalog, whatever its size, to
// what its PyTorch original is made of.
func TestCatalogParameters(t *testing.T) {
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	var predicted []int64
	var lines bytes.Buffer
	for _, m := range workload.Models() {
		w, err := workload.Parse([]byte(`{"model": "` + m.ID + `", "batch": 1, "precision": "bf16", "optimizer": "sgd"}`))
		if err != nil {
			t.Fatal(err)
		}
		p, err := predict.Predict(w, card)
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
	cmd := exec.Command(measuretest.Python(t), "-c", countParameters)
	cmd.Dir = "prober"
	cmd.Stdin, cmd.Stderr = &lines, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	built := json.NewDecoder(bytes.NewReader(out))
	for i, m := range workload.Models() {
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
