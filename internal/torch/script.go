package torch

// RunScript records that a TorchScript function runs. It reports whether it ran
// before: then it was profiled, and is compiled
// (torch/csrc/jit/runtime/profiling_graph_executor_impl.cpp).
func (t *Torch) RunScript(function string) (compiled bool) {
	compiled = t.scripts[function]
	if t.scripts == nil {
		t.scripts = make(map[string]bool)
	}
	t.scripts[function] = true
	return compiled
}

// RanScripts reports whether the process ran a TorchScript function, whose
// first run differs.
func (t *Torch) RanScripts() bool { return len(t.scripts) > 0 }
