package trace

import (
	"slices"
	"testing"
)

func TestBackwardNode(t *testing.T) {
	frames := []Frame{
		{Name: "torch::unwind::unwind()"},
		{Name: "torch::autograd::generated::details::mm_mat1_backward(at::Tensor const&)"},
		{Name: "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)"},
		{Name: "torch::autograd::Engine::thread_main()"},
	}
	if got := BackwardNode(frames); got != "AddmmBackward0" {
		t.Errorf("node = %q", got)
	}
	if got := BackwardNode(frames[:2]); got != "" {
		t.Errorf("node = %q, want none", got)
	}
}

func TestInnermost(t *testing.T) {
	tests := []struct {
		name        string
		files       []string
		model, user string // files; "" for none
	}{
		{"none", nil, "", ""},
		{"plain script", []string{"torch/nn/modules/linear.py", "train.py"}, "train.py", "train.py"},
		{"model of a library", []string{"torch/_ops.py", "transformers/models/bert/modeling_bert.py", "train.py"}, "transformers/models/bert/modeling_bert.py", "train.py"},
		{"optimizer", []string{"torch/_tensor.py", "torch/optim/adam.py", "train.py"}, "torch/optim/adam.py", "train.py"},
		{"installed", []string{"/usr/lib/python3/dist-packages/torch/x.py", "/env/lib/python3.12/site-packages/foo/a.py", "/home/me/torchlike/a.py"}, "/env/lib/python3.12/site-packages/foo/a.py", "/home/me/torchlike/a.py"},
		{"windows", []string{`C:\env\Lib\site-packages\torch\nn\functional.py`, `C:\me\train.py`}, `C:\me\train.py`, `C:\me\train.py`},
		{"compiled", []string{"/tmp/torchinductor_me/cc/ccc7367fkbqvzj6snwggpazhb7gzdkn6l2jt26jfayaom7mdsxph.py", "train.py"}, "train.py", "train.py"},
		{"measured", []string{"torch/optim/adam.py", "/cache/prober-1/memorymark_prober/probe.py", "<string>"}, "torch/optim/adam.py", ""},
		{"measured before the prober had its name", []string{"torch/nn/x.py", "memorymark_worker/probe.py"}, "", ""},
		{"the language model that MemoryMark brings", []string{"torch/nn/x.py", "memorymark_prober/lm.py", "memorymark_prober/probe.py"}, "memorymark_prober/lm.py", ""},
		{"interpreter", []string{"<frozen runpy>", "<string>"}, "", ""},
		{"notebook", []string{"torch/x.py", "<ipython-input-3-ab>"}, "<ipython-input-3-ab>", "<ipython-input-3-ab>"},
		{"C++", []string{"??", "/src/aten/Native.cpp", "libtorch.so.2", "me/train.py"}, "me/train.py", "me/train.py"},
		{"a folder that begins like a library", []string{"torch_things/train.py"}, "torch_things/train.py", "torch_things/train.py"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			frames := make([]Frame, len(test.files))
			for i, f := range test.files {
				frames[i] = Frame{File: f}
			}
			if f, ok := InnermostModel(frames); f.File != test.model || ok != (test.model != "") {
				t.Errorf("model frame = %q, %v, want %q", f.File, ok, test.model)
			}
			if f, ok := InnermostUser(frames); f.File != test.user || ok != (test.user != "") {
				t.Errorf("user frame = %q, %v, want %q", f.File, ok, test.user)
			}
		})
	}
}

func TestMaker(t *testing.T) {
	const functional, linear, module = "torch/nn/functional.py", "/v/site-packages/torch/nn/modules/linear.py", "torch/nn/modules/module.py"
	const gpt2 = "/v/site-packages/transformers/models/gpt2/modeling_gpt2.py"
	for _, test := range []struct {
		name  string
		files []string
		want  string
	}{
		{"none", nil, ""},
		{"a layer that the user calls", []string{functional, linear, module, "train.py"}, functional},
		{"the user's own operation", []string{"torch/_tensor.py", "train.py", module, "main.py"}, "train.py"},
		{"a model moved to the card", []string{module, module, "train.py"}, "train.py"},
		{"layers below a list of them", []string{linear, module, "torch/nn/modules/container.py", module, "train.py"}, linear},
		{"a library's model", []string{linear, module, gpt2, module, "train.py"}, gpt2},
		{"below a library that trains", []string{linear, module, "accelerate/utils/operations.py", "train.py"}, linear},
		{"what such a library makes", []string{"torch/_tensor.py", "accelerate/utils/operations.py", "train.py"}, "accelerate/utils/operations.py"},
		{"an optimizer", []string{"torch/optim/adam.py", "torch/optim/optimizer.py", "train.py"}, "torch/optim/adam.py"},
		{"no user", []string{linear, module}, linear},
	} {
		frames := make([]Frame, len(test.files))
		for i, f := range test.files {
			frames[i] = Frame{File: f}
		}
		if f, ok := Maker(frames); f.File != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q, %v, want %q", test.name, f.File, ok, test.want)
		}
	}
}

// TestOwnFramesAreLeftOut has what an emulated card and the prober add to stacks.
func TestOwnFramesAreLeftOut(t *testing.T) {
	frame := func(file, name string) Frame { return Frame{File: file, Line: 1, Name: name} }
	inner, outer := frame("torch/nn/functional.py", "dropout"), Frame{File: "torch/nn/functional.py", Line: 9, Name: "dropout"}
	handle, hook := frame("torch/overrides.py", "handle_torch_function"), frame("/c/memorymark_emulate/shadows.py", "__torch_function__")
	mine, layer := frame("train.py", "<module>"), frame("torch/nn/modules/dropout.py", "forward")
	probe := frame("/c/memorymark_prober/probe.py", "step")
	for _, test := range []struct {
		name         string
		frames, want []Frame
	}{
		{"a function that handed itself over", []Frame{inner, hook, handle, outer, layer, mine}, []Frame{inner, layer, mine}},
		{"one in C++", []Frame{hook, mine}, []Frame{mine}},
		{"one that calls another", []Frame{hook, handle, layer, mine}, []Frame{layer, mine}},
		{"the prober, below a user's model", []Frame{layer, mine, probe, frame("<string>", "<module>")}, []Frame{layer, mine}},
		{"the prober's own step", []Frame{hook, probe, probe}, []Frame{ownStep}},
		{"a layer in it", []Frame{layer, probe}, []Frame{layer, ownStep}},
		{"the card alone", []Frame{hook}, []Frame{ownCard}},
		{"none", nil, nil},
	} {
		table := NewStacks()
		ids := make([]FrameID, len(test.frames))
		for i, f := range test.frames {
			ids[i] = table.AddFrame(f)
		}
		if got := table.Frames(table.Add(ids)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
