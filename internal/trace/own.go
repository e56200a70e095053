package trace

import "strings"

// These replace MemoryMark's frames where no other frame is left.
var (
	ownStep = Frame{File: "MemoryMark", Name: "training step"}
	ownCard = Frame{File: "MemoryMark", Name: "emulated card"}
)

// withoutOwn removes the frames, innermost first, that exist only because
// MemoryMark ran the program: the prober's calls up to the model, and the layer
// between PyTorch and an emulated card. It reuses the slice.
func withoutOwn(frames []Frame) []Frame {
	out := frames[:0]
	for i := 0; i < len(frames); i++ {
		switch f := frames[i]; {
		case f.IsProber():
			if _, ok := InnermostModel(out); !ok {
				out = append(out, ownStep)
			}
			return out
		case f.IsEmulation():
			i += countRedirected(out, frames[i+1:])
		default:
			out = append(out, f)
		}
	}
	if len(out) == 0 && len(frames) > 0 {
		out = append(out, ownCard)
	}
	return out
}

// countRedirected counts the frames by which a function of PyTorch dispatched to
// a function mode (torch/overrides.py, handle_torch_function): the mode calls it
// again, and that call is already among the inner frames.
func countRedirected(inner, outer []Frame) int {
	n := 0
	if len(outer) > 0 && outer[0].Name == "handle_torch_function" && strings.HasSuffix(outer[0].File, "torch/overrides.py") {
		n = 1
		for _, f := range inner {
			if len(outer) > 1 && f.File == outer[1].File && f.Name == outer[1].Name {
				return 2
			}
		}
	}
	return n
}
