package measure

import (
	"fmt"
	"strconv"
	"strings"
)

// The oldest versions that measuring works with.
const (
	OldestTorch        = "2.4"
	OldestTransformers = "4.50"
)

// difference is where other versions than the predicted ones are known to
// allocate differently (read in their sources).
type difference struct {
	name   string // of the package
	before string // versions before this one differ
	what   string
}

var differences = []difference{
	{"PyTorch", "2.9", "products with a bias take their cuBLASLt workspace of 1 MiB for each call instead of keeping it"},
	{"PyTorch", "2.9", "attention in half types takes flash instead of cuDNN kernels on compute capability 9.0 and 10.0"},
	{"PyTorch", "2.9", "nn.RMSNorm is composed of several operators"},
	{"PyTorch", "2.11", "the gradient of small embeddings takes float32 partial sums"},
	{"transformers", "4.56", "attention copies queries, keys and values, and caches do not copy keys and values"},
	{"transformers", "5.0", "gradient checkpointing is reentrant unless told otherwise"},
	{"transformers", "5.2", "GPT-2 keeps a causal mask of all positions in every layer, 1 MiB of 1024"},
	{"transformers", "5.15", "T5 has eager attention only"},
}

// Differences names what is known to differ between versions that were found
// and those that are predicted.
func Differences(torch, transformers string) []string {
	var out []string
	for _, d := range differences {
		found := torch
		if d.name == "transformers" {
			found = transformers
		}
		if found != "" && Older(found, d.before) {
			out = append(out, fmt.Sprintf("%s %s: %s", d.name, found, d.what))
		}
	}
	return out
}

// Older reports whether a version comes before another. Only its leading
// numbers count: "2.11.0+cu130" is 2.11.0.
func Older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	for i := range max(len(a), len(b)) {
		x, y := 0, 0
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x < y
		}
	}
	return false
}

func numbers(version string) []int {
	var out []int
	for _, part := range strings.Split(version, ".") {
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(part[:end])
		if err != nil {
			break
		}
		out = append(out, n)
		if end < len(part) {
			break
		}
	}
	return out
}
