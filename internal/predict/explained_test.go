package predict

import (
	"fmt"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
	"memorymark/internal/trace"
	"memorymark/internal/workload/workloadtest"
)

// explained is the step that docs/how-prediction-works.md follows: small
// enough to read, with one of everything.
const explained = `{"config": {"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 2, "vocab_size": 1000, "n_positions": 64,
	"activation_function": "gelu", "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "use_cache": false}, "batch": 4, "sequence": 16, "optimizer": "sgd-momentum"}`

// TestExplainedStep holds the listing in docs/how-prediction-works.md to what
// happens; -update writes it.
func TestExplainedStep(t *testing.T) {
	w := workloadtest.Parse(t, explained)
	p := ran(t, w, h200, 1)
	const file, begin, end = "../../docs/how-prediction-works.md", "<!-- step -->\n```\n", "```\n<!-- end -->\n"
	data := testmachine.ReadFile(t, file)
	before, rest, ok1 := strings.Cut(string(data), begin)
	listed, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the listing", file)
	}
	happens := p.listing()
	if *update {
		testmachine.WriteFile(t, file, before+begin+happens+end+after)
	} else if listed != happens {
		t.Errorf("%s lists\n%s\nwhat happens is\n%s", file, listed, happens)
	}
}

// listing writes the events of the first step: what is asked for, what is
// given back and who asked for it.
func (p *program) listing() string {
	var b strings.Builder
	tr := p.requests()
	size, number, live := make(map[trace.ID]int64), make(map[trace.ID]int), int64(0)
	last := ""
	for i, e := range tr.Events[:p.stepEnds[0]] {
		if e.Action == trace.FreeCompleted {
			continue // follows its request at once
		}
		if e.Action == trace.Alloc {
			size[e.ID], live = e.Size, live+e.Size
		} else {
			live -= size[e.ID]
		}
		now, _ := p.spanOf(i)
		if now < forward {
			continue
		}
		if name := marks[now]; name != "" && name != last {
			fmt.Fprintf(&b, "%s\n", name)
			last = name
		}
		module := ""
		if frames := tr.Stacks.Frames(e.Stack); len(frames) > 0 {
			module = frames[0].Name
		}
		if e.Action == trace.Alloc {
			number[e.ID] = len(number) + 1
			line := fmt.Sprintf("  +%-3d %8d  %9d  %s", number[e.ID], e.Size, live, module)
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		} else {
			fmt.Fprintf(&b, "  -%-3d %8d  %9d\n", number[e.ID], -size[e.ID], live)
		}
	}
	return b.String()
}
