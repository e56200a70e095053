package predict

import (
	"fmt"

	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/workload"
)

// oldest is the oldest compute capability that PyTorch 2.11's builds for CUDA
// 12.8 and 13.0 have kernels for. The build for CUDA 12.6 still has them for
// 5.0 to 7.0 (pytorch/pytorch RELEASE.md at v2.11.0, PyTorch CUDA Support
// Matrix).
var oldest = gpu.Capability{Major: 7, Minor: 5}

// Caveats are what a workload does on a card otherwise than its name says.
func Caveats(w *workload.Workload, card *gpu.Card) []string {
	var out []string
	if c := card.ComputeCapability; c != (gpu.Capability{}) && (c.Major < oldest.Major || c.Major == oldest.Major && c.Minor < oldest.Minor) {
		out = append(out, fmt.Sprintf("PyTorch %s supports %s, compute capability %v, only in its CUDA 12.6 build", PyTorchVersion, gpu.WithArticle(card.Name), c))
	}
	if usesBF16(w.Precision) && !card.HasBF16() {
		out = append(out, fmt.Sprintf("%s does not support bf16, so PyTorch emulates it slowly; use amp-fp16", gpu.WithArticle(card.Name)))
	}
	if w.Precision == workload.TF32 && !card.HasTF32() {
		out = append(out, fmt.Sprintf("%s does not support tf32, so it runs in fp32", gpu.WithArticle(card.Name)))
	}
	if w.Precision == workload.FP32 && card.HasTF32() && w.Config != nil && w.TakesImages() {
		out = append(out, convolvedInTF32)
	}
	if w.Config != nil && models.RoutesTokens(w.Config) { // a model of the user's own has none
		out = append(out, routing)
	}
	if w.Config != nil && models.ReadsEnds(w.Config) {
		out = append(out, oneEnd)
	}
	if w.Parallel != nil {
		out = append(out, ncclBuffers, communicated(card))
		if w.Parallel.StaticGraph {
			out = append(out, staticGraph)
		}
	}
	return out
}

// convolvedInTF32 is how float32 convolutions run unless they are told otherwise
// (torch/backends/cudnn/__init__.py, allow_tf32). Their algorithms and workspaces are
// others; products, which have a flag of their own, take the same memory either way.
const convolvedInTF32 = "fp32 is without TF32: PyTorch computes convolutions in TF32 unless torch.backends.cudnn.allow_tf32 is False, and takes what precision tf32 predicts"

// routing is what is assumed of experts, and what else it could be: all tokens are
// in one tensor, sorted by expert, and every expert's weights and gradients are there
// whether a token comes or not (transformers/integrations/moe.py, grouped_mm_experts_forward).
const routing = "experts are taken to get equal shares of the tokens; any other routing takes the same memory, down to the byte: all tokens are sorted into one tensor and multiplied in groups (grouped_mm)"

// oneEnd is what is assumed of texts that are classified by their end.
const oneEnd = "each sample is taken to have one end-of-text token, as tokenizers write it; the classifier selects the states there, and more of them take more memory"

// ncclBuffers is what NCCL takes for itself, with cudaMalloc and not from the
// allocator: measured for one process with one communicator on an H200, by what
// the card has in use beyond the context. More ranks take more channels.
const ncclBuffers = "NCCL's own buffers are not counted: one communicator of one rank took 585 MB on an H200"

// communicated says what speeds make of communication.
func communicated(card *gpu.Card) string {
	if card.Link() == nil {
		return "speeds leave communication out: how such GPUs are linked is not known"
	}
	return "speeds include communication: bytes over " + card.Link().Name + " as NCCL moves them, overlapped with compute"
}

// staticGraph is what the first step of DDP's static_graph does otherwise than
// those after it, which are as without (torch/nn/parallel/distributed.py,
// _DDPSink; reducer.cpp, delay_all_reduce).
const staticGraph = "the first step of static_graph takes more than is predicted: it copies the model's outputs, and gradients only when all are there"

func usesBF16(p workload.Precision) bool { return p == workload.BF16 || p == workload.AMPBF16 }
