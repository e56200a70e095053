// Package recipe writes Python programs that train a workload as it was
// predicted: the same model, settings and loop, on random data. A program runs as
// it is, and a test runs one of each kind on the emulated card, where it takes what
// was predicted.
package recipe

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Recipe is how to run a workload: text to paste.
type Recipe struct {
	Launch  string `json:"launch" doc:"a command line that starts train.py"`
	Program string `json:"program" doc:"train.py: Python that runs as it is, on random data"`
}

// New writes the recipe of a training workload. It is nil where there is no program
// of its own for it: no library has the model or no loop of theirs does without an
// optimizer, or what is predicted is not written here, such as a pipeline or batches
// of different lengths.
func New(w *workload.Workload) *Recipe {
	if !written(w) {
		return nil
	}
	p := &program{w: w, imports: make(map[string][]string)}
	p.write()
	return &Recipe{Launch: launch(w), Program: p.text()}
}

// written reports whether there is a program for a workload.
func written(w *workload.Workload) bool {
	switch p := w.Parallel; {
	case w.Config == nil, w.Unmodelled != "", w.Config.ModelType == languageModel, w.Phase != workload.Train, w.Varied():
		return false
	case w.Loop.IsLibrarys() && w.Optimizer == workload.NoOptimizer:
		return false
	case p == nil:
		return true
	default:
		return p.Kind != workload.Pipeline && !w.Loop.IsLibrarys()
	}
}

const (
	languageModel     = "lm" // the plain language model of a study, which no library has
	torchvisionResNet = "torchvision_resnet"
)

// AsWritten is a question with the loop that people write for a plain one, and New
// with them: the model is loaded on the host, and fp16 autocast has a gradient scaler.
// Any other loop stays.
func AsWritten(d workload.Draft) workload.Draft {
	if _, given := d["loop"]; given && d.Text("loop") != string(workload.PlainLoop) {
		return d
	}
	out := maps.Clone(d)
	out["loop"] = json.RawMessage(`{"build":"cpu"}`)
	if d.Text("precision") == string(workload.AMPFP16) {
		out["loop"] = json.RawMessage(`{"build":"cpu","scaler":"grad"}`)
	}
	return out
}

// launch is how the program is started, on each of its machines.
func launch(w *workload.Workload) string {
	command := "python train.py"
	if p := w.Parallel; p != nil && p.GPUs <= gpu.MachineGPUs {
		command = fmt.Sprintf("torchrun --standalone --nproc-per-node %d train.py", p.GPUs)
	} else if p != nil {
		command = fmt.Sprintf("torchrun --nnodes %d --nproc-per-node %d --rdzv-backend c10d --rdzv-endpoint $HOST:29500 train.py",
			p.GPUs/gpu.MachineGPUs, gpu.MachineGPUs)
	}
	if w.ExpandableSegments {
		command = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True " + command
	}
	return command
}

// width is how long a line may be.
const width = 80

// call writes a call in one line, or with a line for each argument where that is too
// long. The prefix ends with what is called.
func call(prefix string, arguments ...string) string {
	return wrapped(prefix+"(", ")", arguments)
}

// wrapped writes parts between brackets in one line, or in a line each.
func wrapped(opening, closing string, parts []string) string {
	one := opening + strings.Join(parts, ", ") + closing
	if len(one) <= width || len(parts) == 0 {
		return one
	}
	indent := strings.Repeat(" ", len(opening)-len(strings.TrimLeft(opening, " ")))
	inner := "\n" + indent + "    "
	return opening + inner + strings.Join(parts, ","+inner) + ",\n" + indent + closing
}
