package predict

import (
	"math"
	"strings"
	"testing"

	"memorymark/internal/steptime"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload/workloadtest"
)

// float32Kernel is one that others timed on several cards, in microseconds with its
// launch (float32.jsonl of internal/steptime/testdata/kernels).
type float32Kernel struct {
	Op                               string
	M, N, K, B, Rows, Width          float64
	Batch, Channels, Filters, Kernel float64
	Pixels, Stride, Pad              float64
	Others                           map[string]float64
}

// launch is what the time model knows of a kernel, by the set that it belongs to; ""
// is a product of many odd matrices, which no model here has.
func (k *float32Kernel) launch() (set string, out steptime.Launches) {
	kind, size := steptime.Kernel, []float64{12 * k.Rows * k.Width}
	set = "elementwise, norms, softmax in float32"
	switch k.Op {
	case "bmm":
		return "", nil
	case "linear":
		set, kind, size = "products in float32", steptime.Product, []float64{k.M, k.N, k.K, 1, 0, rowAlignment(k.K)}
	case "conv":
		out := math.Floor((k.Pixels+2*k.Pad-k.Kernel)/k.Stride) + 1
		set, kind = "convolutions in float32", steptime.Convolution
		size = []float64{steptime.Forward, k.Batch, k.Channels, k.Filters, k.Kernel * k.Kernel, k.Pixels * k.Pixels, out * out, 1, 0}
	case "ln":
		kind, size = steptime.LayerNorm, []float64{8 * k.Rows * k.Width}
	case "softmax":
		kind, size = steptime.Softmax, []float64{8 * k.Rows * k.Width}
	case "gelu", "relu", "tanh", "addu", "mulu":
		size = []float64{8 * k.Rows * k.Width}
	}
	out.Add(kind, steptime.FP32, false, size...)
	return set, out
}

// rowAlignment is to how many bytes rows of float32 are aligned, at most 16.
func rowAlignment(elements float64) float64 {
	bytes := 4.
	for bytes < 16 && math.Mod(4*elements, 2*bytes) == 0 {
		bytes *= 2
	}
	return bytes
}

// kernelErrors is how far off kernels of at least 200 µs are that others timed on other
// cards, by card and set.
func kernelErrors(t *testing.T) map[[2]string]lineErrors {
	t.Helper()
	out := make(map[[2]string]lineErrors)
	add := func(id, set, name string, l steptime.Launches, seconds float64) {
		card := workloadtest.Card(t, id)
		key, part := [2]string{id, set}, l.Busy(card, 0)
		part.Host = 0
		out[key] = append(out[key], timed(name, Seconds{Computing: part.Device, Range: steptime.RangeOf(part)}, seconds))
	}
	products := timedByOthers(t, "products.csv.xz")
	for _, r := range products {
		n := numbers(t, r)
		for i, id := range []string{"h200", "h100", "a100-80gb", "l40s", "rtx-pro-6000", "b200"} {
			if us := n[3+i]; us >= 200 {
				var l steptime.Launches
				l.Add(steptime.Product, steptime.BF16, false, n[:3]...)
				add(id, "products in bf16", strings.Join(r[:3], " × "), l, 1e-6*us)
			}
		}
	}
	const launch = 26 // microseconds in each of these; on a V100 32
	cards := map[string]string{"NVIDIA A100-PCIE-40GB": "a100-40gb-pcie", "NVIDIA A100 80GB PCIe": "a100-80gb-pcie", "Tesla V100-PCIE-32GB": "v100-32gb", "Tesla T4": "t4"}
	for _, k := range tracetest.Lines[float32Kernel](t, "../steptime/testdata/kernels/float32.jsonl.xz") {
		set, l := k.launch()
		for name, us := range k.Others {
			if id := cards[name]; id != "" && set != "" && us >= 200+launch {
				add(id, set, k.Op, l, 1e-6*(us-launch))
			}
		}
	}
	return out
}

// TestKernels holds the errors of kernels on other cards to what they were.
func TestKernels(t *testing.T) {
	all := kernelErrors(t)
	if len(all) < 12 {
		t.Errorf("%d sets", len(all))
	}
	for key, e := range all {
		s := e.sum()
		t.Logf("%s, %s: %d, median %.3f, 95 %% within %.3f, %.2f to %.2f", key[0], key[1], s.Cases, s.Median, s.Percentile95, s.Lowest, s.Highest)
		if most := map[bool]float64{false: 0.17, true: 0.35}[strings.HasPrefix(key[1], "conv")]; s.Median > most {
			t.Errorf("%s, %s: half are within %.3f; it was better", key[0], key[1], s.Median)
		}
	}
}
