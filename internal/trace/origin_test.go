package trace

import "testing"

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
		{"measured before the prober had its name", []string{"torch/nn/x.py", "memorymark_worker/probe.py"}, "memorymark_worker/probe.py", ""},
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
