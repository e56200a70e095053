package request

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/workload/workloadtest"
)

func need(t *testing.T, reserved bytesize.Bytes, gpus int64) *Need {
	t.Helper()
	card := workloadtest.Card(t, "a10")
	return New("train.py", evidence.Emulated, card, gpus, reserved)
}

// What is asked for is what PyTorch reserves, the context and the driver's part.
func TestNew(t *testing.T) {
	n := need(t, 18*bytesize.GiB, 1)
	card, _ := gpu.Find("a10")
	if sum := n.Reserved + n.Context + n.Driver; n.Context != card.Context.Bytes || n.Capacity() < sum || n.Capacity() >= sum+bytesize.MiB {
		t.Errorf("%+v", n)
	}
	if slices.Contains(n.Cards, "t4") || n.Cards[0] != "l4" && n.Cards[0] != "a10g" || !slices.Contains(n.Cards, "b200") {
		t.Errorf("cards %v", n.Cards)
	}
	if n := need(t, 1<<50, 1); len(n.Cards) != 0 {
		t.Errorf("cards with a petabyte: %v", n.Cards)
	}
}

// TestDriverReserve compares the estimate with what nvidia-smi reports of cards
// (memory.total, in MiB) beyond what CUDA reports of them.
func TestDriverReserve(t *testing.T) {
	for id, total := range map[string]int64{"t4": 15360, "a10": 23028, "l4": 23034, "rtx-4090": 24564, "h100": 81559, "a100-80gb": 81920} {
		card := workloadtest.Card(t, id)
		kept := bytesize.Bytes(total)*bytesize.MiB - card.Memory.Bytes
		if estimate := driverReserve(card); estimate < kept || estimate > kept+450*bytesize.MiB {
			t.Errorf("%s: the driver keeps %v, the estimate is %v", id, kept, estimate)
		}
	}
}

// Every format but Slurm's is YAML, and has the figures.
func TestFormats(t *testing.T) {
	n := need(t, 18*bytesize.GiB, 2)
	whole, shared := fmt.Sprint(n.MiB), fmt.Sprint(n.MiB-int64(n.Driver>>20))
	for name, want := range map[string][]string{
		"kubernetes": {"nvidia.com/gpu: 2", fmt.Sprint(n.MiB - 1)},
		"dra":        {"count: 2", `quantity("` + whole + `Mi")`, "resource.k8s.io/v1"},
		"hami":       {"nvidia.com/gpu: 2", "nvidia.com/gpumem: " + shared},
		"kai":        {`gpu-memory: "` + shared + `"`, `gpu-fraction-num-devices: "2"`},
		"slurm":      {"#SBATCH --gres=gpu:2", "|a100-80gb|", whole + " MiB"},
		"skypilot":   {`"A100-80GB": 2`, `"L4": 2`},
	} {
		f, ok := Find(name)
		if !ok {
			t.Fatalf("there is no format %s", name)
		}
		text := f.Write(n)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %s:\n%s", name, w, text)
			}
		}
		var parsed map[string]any
		if err := yaml.Unmarshal([]byte(text), &parsed); name != "slurm" && (err != nil || len(parsed) == 0) {
			t.Errorf("%s is not YAML: %v\n%s", name, err, text)
		}
	}
	if len(Formats) != 6 {
		t.Errorf("%d formats, not all are tested", len(Formats))
	}
}
