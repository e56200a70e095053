package cli

import (
	"fmt"
	"io"
	"strings"
)

// agentTool is a question that agents ask, and the command that answers it. What
// agents read about MemoryMark, over the protocol or in files, is made of this table.
type agentTool struct {
	name    string
	command string
	purpose string
	// arguments of the command that are no flags.
	arguments []argument
	// asksWorkload is whether its flags for keys of a workload are arguments.
	asksWorkload bool
	flags        []string // further flags that are arguments
	executes     bool     // what it is given
}

var (
	modelArgument = argument{"model", map[string]any{
		"type":        "string",
		"description": "an id from list_models or of the Hugging Face Hub (Qwen/Qwen3-8B), a path to a config.json, or your own function, train.py:make, that returns a model",
	}}
	fileArgument = argument{"file", map[string]any{
		"type": "string", "description": "path of a PyTorch memory snapshot (torch.cuda.memory._dump_snapshot), plain or compressed",
	}}
	commandArgument = argument{"command", map[string]any{
		"type": "array", "items": map[string]any{"type": "string"}, "description": `the command and its arguments, such as ["python", "train.py", "--epochs", "1"]`,
	}}
)

var agentTools = []*agentTool{
	{
		name: "predict", command: "predict", arguments: []argument{modelArgument}, asksWorkload: true, flags: []string{"engine", "snapshot", "download"},
		purpose: "Predicts the GPU memory of a training step to the byte, without a GPU: peaks, whether it fits the card, and what the memory is used for. Use it before you start or change a training run.",
	},
	{
		name: "largest_batch", command: "analyze", arguments: []argument{modelArgument}, asksWorkload: true,
		flags:   []string{"engine", "download", "global-batch", "multiple-of", "reserve", "sweep", "tokens", "samples"},
		purpose: "Finds the largest batch that trains on a card, the one worth using, and what the current one wastes. With sweep it shows what each single change would do.",
	},
	{
		name: "fit", command: "fit", arguments: []argument{modelArgument}, asksWorkload: true, flags: []string{"reserve", "full", "download"},
		purpose: "Finds the fewest changes (precision, checkpointing, optimizer, adapters, smaller batches with accumulation) that make a model fit a card. Use it after an out-of-memory error.",
	},
	{
		name: "plan", command: "plan", arguments: []argument{modelArgument}, asksWorkload: true,
		flags:   []string{"cards", "mine", "max-gpus", "global-batch", "tokens", "samples", "within", "full", "download"},
		purpose: "Plans what to train a model on, and how: which cards, how many, how to set them up, what it costs, how long it takes, with a Python program for each option.",
	},
	{
		name: "run", command: "run", arguments: []argument{commandArgument}, executes: true,
		flags:   []string{"gpu", "gpus", "limit", "reserve", "steps", "oom-at-step", "snapshot", "values"},
		purpose: "Runs an unchanged PyTorch program on an emulated GPU and reports its memory: peaks, whether it fits, and the line where it runs out of memory. It executes the command on this machine, and needs Linux and a CUDA build of PyTorch, but no GPU. Give steps a small number.",
	},
	{
		name: "explain_snapshot", command: "snapshot info", arguments: []argument{fileArgument},
		purpose: "Explains a recorded PyTorch memory snapshot: peaks, what was live, why memory ran out.",
	},
	{
		name: "snapshot_top", command: "snapshot top", arguments: []argument{fileArgument}, flags: []string{"device", "at", "by", "number", "frames"},
		purpose: "Lists the largest allocations of a snapshot at a moment, with the lines of code that made them.",
	},
	{
		name: "replay_snapshot", command: "snapshot replay", arguments: []argument{fileArgument}, flags: []string{"device", "limit", "expandable-segments", "max-split-size", "gc-threshold", "roundup"},
		purpose: "Says whether a recorded run would have fitted another card or other allocator settings.",
	},
	{name: "list_models", command: "models", purpose: "Lists the models of the catalog. Any id of the Hugging Face Hub works, too."},
	{name: "list_gpus", command: "gpus", purpose: "Lists the cards of the catalog, with memory, speed and prices."},
}

const agentIntroduction = "MemoryMark answers questions about the GPU memory of PyTorch training without a GPU: to the byte, " +
	"for known models by prediction, for any program by running it on an emulated card. " +
	"Each answer says which engine it came from and how accurate that engine was against real cards."

// writeSkill writes a SKILL.md: a file that agents read when a task is about its subject.
func writeSkill(w io.Writer) error {
	fmt.Fprint(w, "---\nname: memorymark\ndescription: Find out, without a GPU, how much GPU memory PyTorch training needs, which batch and which card fit, "+
		"and why a run was out of memory. Use it before training runs are started or changed, and after out-of-memory errors.\n---\n\n"+
		"# GPU memory with MemoryMark\n\n"+agentIntroduction+"\n\n"+
		"Run it with `uvx memorymark COMMAND`, or `pip install memorymark`. As a server of the Model Context Protocol: `uvx memorymark mcp`.\n\n"+
		"## Which command\n\n")
	for _, t := range agentTools {
		fmt.Fprintf(w, "* `memorymark %s`: %s\n", t.command, t.purpose)
	}
	fmt.Fprint(w, "\n## Examples\n\n```sh\n")
	for _, t := range agentTools {
		example, _, _ := strings.Cut(strings.TrimSpace(t.cobra().Example), "\n")
		fmt.Fprintln(w, example)
	}
	fmt.Fprint(w, "```\n\nEvery command has `--help`, and `--json` for an answer that a program reads.\n\n## Exit codes\n\n| code | meaning |\n|--:|---|\n")
	for _, c := range exitCodes {
		fmt.Fprintf(w, "| %d | %s |\n", c.code, c.meaning)
	}
	_, err := fmt.Fprint(w, "\n## How to work with it\n\n"+
		"1. For a model by name: `predict` with the batch, precision, optimizer and card of the run; if the exit code is 4, `fit`.\n"+
		"2. For a training script: `run --gpu CARD --steps 3 -- python train.py`; if the exit code is 4, the report names the line and what was live.\n"+
		"3. After each change, ask again: an answer takes seconds, a failed run on a rented card takes hours.\n"+
		"4. Quote the engine and the accuracy that the answer states; do not add a margin of your own.\n")
	return err
}

// writeLLMs writes an llms.txt (llmstxt.org): what the project is, and where to read on.
func writeLLMs(w io.Writer) error {
	fmt.Fprint(w, "# MemoryMark\n\n> "+agentIntroduction+"\n\n")
	for _, t := range agentTools {
		fmt.Fprintf(w, "- `memorymark %s`: %s\n", t.command, t.purpose)
	}
	fmt.Fprint(w, "\n## Docs\n\n")
	for _, d := range agentDocuments {
		fmt.Fprintf(w, "- [%s](%s): %s\n", d.title, d.path, d.what)
	}
	fmt.Fprint(w, "\n## Exit codes\n\n")
	for _, c := range exitCodes {
		if _, err := fmt.Fprintf(w, "- %d: %s\n", c.code, c.meaning); err != nil {
			return err
		}
	}
	return nil
}

var agentDocuments = []struct{ title, path, what string }{
	{"Guide", "docs/guide/README.md", "which command answers which question"},
	{"Agents", "docs/guide/agents.md", "the Model Context Protocol, the skill, exit codes"},
	{"Accuracy", "docs/accuracy.md", "predictions against real cards, by family"},
	{"Skill", "SKILL.md", "how an agent works with MemoryMark"},
	{"HTTP API", "docs/api.md", "the same answers from a server"},
}
