package trace

import "strings"

// libraries are the directories of code that people use but do not write. One
// of them must be a whole element of the path.
var libraries = []string{
	"torch", "torchvision", "torchaudio", "torchtune", "torchao", "functorch", "triton",
	"transformers", "accelerate", "peft", "trl", "diffusers", "timm", "datasets",
	"lightning", "lightning_fabric", "pytorch_lightning", "deepspeed", "megatron", "apex",
	"transformer_engine", "flash_attn", "xformers", "bitsandbytes", "composer", "fairscale",
	"site-packages", "dist-packages", "importlib", "multiprocessing", "concurrent",
}

// trainers are libraries that run models and contain none.
var trainers = []string{"accelerate", "lightning", "lightning_fabric", "pytorch_lightning", "deepspeed", "composer"}

// IsNative reports whether a frame is C++ and not Python.
func (f Frame) IsNative() bool {
	if f.File == "" || f.File == "??" || strings.Contains(f.Name, "::") {
		return true
	}
	i := strings.LastIndexByte(f.File, '.')
	if i < 0 {
		return false
	}
	switch f.File[i:] {
	case ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".cu", ".cuh", ".so", ".S":
		return true
	default:
		return strings.Contains(f.File, ".so.")
	}
}

// IsTorch reports whether a frame is PyTorch's own, or of the layer between
// PyTorch and an emulated card.
func (f Frame) IsTorch() bool {
	return f.IsNative() || f.in("torch") || f.in("functorch") || f.IsEmulation() || isSynthetic(f.File) || isCompiled(f.File)
}

// IsEmulation reports whether a frame is of the layer between PyTorch and an
// emulated card.
func (f Frame) IsEmulation() bool { return f.in("memorymark_emulate") }

// IsProber reports whether a frame is of the program that runs the steps which
// MemoryMark measures, and not of the language model that it brings. Older
// recordings have its former name.
func (f Frame) IsProber() bool {
	return (f.in("memorymark_prober") || f.in("memorymark_worker")) && !strings.HasSuffix(f.File, "/lm.py")
}

// isOwn reports whether a frame is MemoryMark's, including the models it
// brings.
func (f Frame) isOwn() bool {
	return f.in("memorymark_prober") || f.in("memorymark_worker") || f == ownStep || f == ownCard
}

// runsModels reports whether a frame is of code that runs other people's models
// and contains none: its lines say nothing about the model.
func (f Frame) runsModels() bool {
	for _, name := range trainers {
		if f.in(name) {
			return true
		}
	}
	return f == ownStep
}

// IsLayer reports whether a frame is of a layer or function of torch.nn, and not
// of how modules are called, moved and put together.
func (f Frame) IsLayer() bool {
	return strings.Contains(f.File, "torch/nn/") &&
		!strings.HasSuffix(f.File, "/modules/module.py") && !strings.HasSuffix(f.File, "/modules/container.py")
}

// IsLibrary reports whether a frame is code that the user did not write:
// PyTorch, a library, the interpreter.
func (f Frame) IsLibrary() bool {
	if f.IsTorch() || f.isOwn() || strings.HasSuffix(f.File, "/_ops.py") || f.inPythonLib() {
		return true
	}
	for _, name := range libraries {
		if f.in(name) {
			return true
		}
	}
	return false
}

// in reports whether the file lies in a directory of that name.
func (f Frame) in(dir string) bool {
	rest := f.File
	for {
		i := strings.Index(rest, dir)
		if i < 0 {
			return false
		}
		end := i + len(dir)
		if (i == 0 || isSlash(rest[i-1])) && end < len(rest) && isSlash(rest[end]) {
			return true
		}
		rest = rest[end:]
	}
}

// inPythonLib reports whether the file belongs to the standard library, as in
// lib/python3.12/threading.py.
func (f Frame) inPythonLib() bool {
	return strings.Contains(f.File, "/lib/python3") || strings.HasPrefix(f.File, "lib/python3")
}

// isSynthetic reports whether a file name was made up by the interpreter, as
// <frozen runpy>, <string>, <eval_with_key>.3. A notebook's cell is not.
func isSynthetic(file string) bool {
	return strings.HasPrefix(file, "<") && !strings.HasPrefix(file, "<ipython-input")
}

// isCompiled reports whether torch.compile wrote a file: it names them by a
// hash, as c2/cc2x…52 letters in all….py (torch/_inductor/codecache.py).
func isCompiled(file string) bool {
	base, ok := strings.CutSuffix(file[strings.LastIndexAny(file, `/\`)+1:], ".py")
	return ok && len(base) == 52 && strings.Trim(base, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

func isSlash(c byte) bool { return c == '/' || c == '\\' }

// InnermostUser returns the innermost frame that the user wrote: which line of
// theirs made an allocation. ok is false if there is none.
func InnermostUser(frames []Frame) (f Frame, ok bool) { return innermost(frames, Frame.IsLibrary) }

// InnermostModel returns the innermost frame outside PyTorch, be it the user's
// or a library's: which line of the model made an allocation. For what an
// optimizer allocates it is the optimizer's, which decided to.
func InnermostModel(frames []Frame) (f Frame, ok bool) {
	return innermost(frames, func(f Frame) bool {
		return f.IsTorch() && !strings.Contains(f.File, "torch/optim/") || f.IsProber()
	})
}

// Maker returns the frame that best explains an allocation: the innermost one
// of a library or the user. For PyTorch's own layers it is a line of the layer:
// a single line of the user's may call a whole nn.TransformerEncoder.
func Maker(frames []Frame) (f Frame, ok bool) {
	model, ok := InnermostModel(frames)
	if ok && model.IsLibrary() && !model.runsModels() {
		return model, true
	}
	for _, f := range frames {
		if f.IsLayer() {
			return f, true
		}
		if ok && f == model {
			break
		}
	}
	return model, ok
}

// Short returns the frame without the folder that Python's packages are in.
func (f Frame) Short() Frame {
	const packages = "site-packages/"
	f.File = strings.ReplaceAll(f.File, `\`, "/")
	if at := strings.LastIndex(f.File, packages); at >= 0 {
		f.File = f.File[at+len(packages):]
	}
	return f
}

// BackwardNode returns the operator whose backward made an allocation, as
// "AddmmBackward0", or "". Only recordings with C++ stacks have it.
func BackwardNode(frames []Frame) string {
	for _, f := range frames {
		if name, ok := strings.CutPrefix(f.Name, "torch::autograd::generated::"); ok {
			if node, _, ok := strings.Cut(name, "::apply("); ok {
				return node
			}
		}
	}
	return ""
}

func innermost(frames []Frame, skip func(Frame) bool) (Frame, bool) {
	for _, f := range frames {
		if !skip(f) {
			return f, true
		}
	}
	return Frame{}, false
}
