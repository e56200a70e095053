package emulate

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"memorymark/internal/gpu"
)

// TestServing joins what the engine and a worker of vLLM say of the same server.
func TestServing(t *testing.T) {
	sum := &Summary{Processes: []Process{{}}}
	for _, known := range []string{
		`{"engine": "vLLM", "version": "0.32.0", "model": "m", "max_model_len": 8192, "gpus": 2, "dummy_weights": true, "concurrency": 76.59375, "tokens": 627456, "model_limit": 131072, "largest_max_model_len": 131072, "starts": true}`,
		`{"kv_bytes": 20560480960, "weights_bytes": 2491082752, "activation_bytes": 125923328}`,
		`null`, ``,
	} {
		if err := sum.serve(json.RawMessage(known)); err != nil {
			t.Fatal(err)
		}
	}
	s := sum.Serving
	if s == nil || !s.Starts || s.KVCache != 20560480960 || s.Tokens != 627456 || s.Weights != 2491082752 || s.GPUs != 2 {
		t.Errorf("%+v", s)
	}
	if sum.judge(); sum.Fits == nil || !*sum.Fits {
		t.Error("a server that starts does not fit")
	}
	sum.Serving = &Serving{Error: "To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, which is larger than the available KV cache memory (5.1 GiB)."}
	if sum.judge(); sum.Fits == nil || *sum.Fits {
		t.Error("a server that lacks memory fits")
	}
}

// TestOutside counts the context, NCCL's communicators, and what was taken from
// the driver without PyTorch's allocator.
func TestOutside(t *testing.T) {
	card := &gpu.Card{Context: gpu.Amount{Bytes: 500e6, Source: "measured"}}
	p := &Process{Devices: []DevicePeaks{{Reserved: 3e9, Driver: 3.1e9}}}
	if o := p.outside(card, 0); o.Bytes != 600e6 || o.Estimated || o.Source != "measured" {
		t.Errorf("alone: %+v", o)
	}
	if o := p.outside(card, 2); o.Bytes != 1770e6 || !o.Estimated || !strings.Contains(o.Source, "585 MB") {
		t.Errorf("with two communicators: %+v", o)
	}
}

// TestVLLMLogs reads what vLLM printed on real cards (testdata/vllm/README.md).
// Each post has a figure to compare with, and its figures agree.
func TestVLLMLogs(t *testing.T) {
	f, err := os.Open("testdata/vllm/logs.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 21 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		figures := make([]float64, 5) // weights_gib to concurrency
		known := 0
		for i, text := range row[8:] {
			if text == "" {
				continue
			}
			if figures[i], err = strconv.ParseFloat(text, 64); err != nil {
				t.Errorf("%s: %v", row[0], err)
			}
			known++
		}
		tokens, length, atOnce := figures[2], figures[3], figures[4]
		if row[0] == "" || known == 0 || (tokens > 0 && atOnce > 0 && math.Abs(tokens/length-atOnce) > 0.006) {
			t.Errorf("%q", row)
		}
	}
}
