package trace

import "strings"

// What stands for MemoryMark's frames where nothing else is left that says who
// asked for memory.
var (
	ownStep = Frame{File: "MemoryMark", Name: "training step"}
	ownCard = Frame{File: "MemoryMark", Name: "emulated card"}
)

// withoutOwn leaves out the frames, innermost first, that are there only because
// MemoryMark ran the program: how its prober came to call the model, and what
// stands between PyTorch and an emulated card. The slice is used again.
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
			i += redirected(out, frames[i+1:])
		default:
			out = append(out, f)
		}
	}
	if len(out) == 0 && len(frames) > 0 {
		out = append(out, ownCard)
	}
	return out
}

// redirected counts the frames by which a function of PyTorch's handed itself to
// a function mode (torch/overrides.py, handle_torch_function): it is called once
// more by the mode, and that call is among the inner frames already.
func redirected(inner, outer []Frame) int {
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
