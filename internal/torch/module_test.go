package torch

import "testing"

// What backward makes, also when a checkpointed block runs again, belongs to
// the module that forward was in, and a parameter to its first reader.
func TestModules(t *testing.T) {
	for _, checkpointed := range []bool{false, true} {
		process := New(Device{SMs: 132, ThreadsPerSM: 2048, Major: 9})
		process.Name = "Model"
		layer := process.NewLinear(8, 8, true, Float32)
		x := process.Input(Float32, 4, 8)
		f := process.Enter().In("encoder")
		block := func(in []*Var) Value {
			g := process.Enter(in[0]).In("layer", 3)
			return g.Return(process.Tanh(process.Linear(in[0], layer)))
		}
		var out Value
		if v := f.Let(Borrow(x)); checkpointed {
			out = process.CheckpointInputs(block, v)
		} else {
			out = block([]*Var{v})
		}
		loss := f.Let(process.Mean(out))
		process.Backward(loss)
		f.End()
		if process.module != process.root {
			t.Errorf("%s still runs", process.module.path)
		}
		counts := make(map[string]int)
		for _, e := range process.Trace().Events {
			name := ""
			if frames := process.Trace().Stacks.Frames(e.Stack); len(frames) > 0 {
				name = frames[0].File + " " + frames[0].Name
			}
			counts[name]++
		}
		if counts["Model encoder.layer.3"] < 10 || counts["Model encoder"] == 0 || counts[""] == 0 || len(counts) != 3 {
			t.Errorf("checkpointed %v: events by module are %v", checkpointed, counts)
		}
	}
}
