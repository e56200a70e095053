package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/workload"
)

// workloadFlags are the flags that say what is trained, one for each key of a
// workload but the model.
type workloadFlags struct{ set *pflag.FlagSet }

// workloadFlagHelp explains the keys, in the order in which help shows them.
var workloadFlagHelp = []struct{ key, help string }{
	{"batch", "`N` samples in a step (default 16); also --batch-size"},
	{"sequence", "`N` tokens in a sample (default 128); also --context-length"},
	{"image", "images of `N` × N pixels (default 224)"},
	{"precision", "`type` to compute in: fp32, tf32, amp-bf16, amp-fp16 or bf16 (default fp32)"},
	{"optimizer", "`name`: adamw, adam, sgd, sgd-momentum or none (default adamw)"},
	{"optimizer_impl", "`how` the optimizer computes: foreach, fused or loop (default foreach)"},
	{"phase", "`part` of a step to run: train, backward, forward or infer (default train)"},
	{"loss", "`loss`: labels, the model's own, or mean, of its logits (default labels)"},
	{"attention", "`how` attention is computed: sdpa or eager (default sdpa)"},
	{"attention_mask", "`mask` in the batch: none, ones or padded (default none)"},
	{"checkpointing", "compute activations again in backward instead of keeping them"},
	{"mode", "`mode` of the model: train or eval (default train)"},
	{"accumulate", "`N` forward and backward passes before each update (default 1)"},
	{"clip_grad_norm", "clip gradients by their norm"},
	{"expandable_segments", "with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
	{"gpu", "an `id` of memorymark gpus (default: this machine's card, else a10)"},
	{"limit_gib", "`GiB` that the allocator may reserve at most (default: the card's memory less the context)"},
	{"config", "keys of the model's config.json to replace, as `JSON`: '{\"num_hidden_layers\": 6}'"},
	{"id", "`text` that the answer repeats"},
}

// switches are the keys that are true or false.
var switches = map[string]bool{"checkpointing": true, "clip_grad_norm": true, "expandable_segments": true}

func addWorkloadFlags(c *cobra.Command) *workloadFlags { return addFlagsOf(c, workload.Keys()) }

// addFlagsOf adds the flags of some keys.
func addFlagsOf(c *cobra.Command, keys []string) *workloadFlags {
	takeAlso(c, map[string]string{"batch-size": "batch", "context-length": "sequence"})
	for _, f := range workloadFlagHelp {
		if !slices.Contains(keys, f.key) {
			continue
		}
		if name := flagName(f.key); switches[f.key] {
			c.Flags().Bool(name, false, f.help)
		} else {
			c.Flags().String(name, "", f.help)
		}
	}
	return &workloadFlags{c.Flags()}
}

// takeAlso lets the flags of a command go by other names, too.
func takeAlso(c *cobra.Command, names map[string]string) {
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if own, ok := names[name]; ok {
			name = own
		}
		return pflag.NormalizedName(name)
	})
}

func flagName(key string) string { return strings.ReplaceAll(key, "_", "-") }

// apply sets the keys that flags were given for.
func (f *workloadFlags) apply(d workload.Draft) {
	for _, key := range workload.Keys() {
		if flag := f.set.Lookup(flagName(key)); flag != nil && flag.Changed {
			d.Set(key, flag.Value.String())
		}
	}
}

// draft puts the arguments over what a file says.
func (f *workloadFlags) draft(d workload.Draft, args []string) workload.Draft {
	if len(args) > 0 {
		d.Set("model", args[0])
	}
	f.apply(d)
	return d
}

// maxWorkloadFile is the largest file of workloads or configurations.
const maxWorkloadFile = 64 << 20

// readAll reads a file, or stdin if the path is "-", of at most that size.
func (e *env) readAll(path string) ([]byte, error) {
	r, _, err := e.open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxWorkloadFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(data) > maxWorkloadFile:
		return nil, badInput("", "read %s: larger than 64 MiB", path)
	}
	return data, nil
}

// readWorkloads reads the workloads of a file: YAML by its name, else JSON.
func (e *env) readWorkloads(path string) ([]workload.Entry, error) {
	data, err := e.readAll(path)
	if err != nil {
		return nil, err
	}
	var entries []workload.Entry
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		if entries, err = workload.ReadYAML(data); err != nil {
			return nil, badInput("", "%s: %w", path, err)
		}
	default:
		entries = workload.ReadJSON(data)
	}
	if len(entries) == 0 {
		return nil, badInput("write one workload a line, as {\"model\": \"bert\", \"batch\": 8}", "%s: there is no workload in it", path)
	}
	return entries, nil
}

// finish makes a workload of a draft whose model may be a path to a
// config.json, or to a folder with one.
func (e *env) finish(d workload.Draft) (*workload.Workload, error) {
	name := d.Text("model")
	if _, err := workload.FindModel(name); name != "" && err != nil {
		if path, ok := configFile(name); ok {
			data, err := e.readAll(path)
			if err != nil {
				return nil, err
			}
			if err := d.UseConfig(data); err != nil {
				return nil, badInput("", "%s: %w", path, err)
			}
		}
	}
	return d.Workload()
}

// configFile returns the configuration that a model's name means, if it is one
// of a file that exists or could only be a file's.
func configFile(name string) (string, bool) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return filepath.Join(name, "config.json"), true
	case err == nil, strings.HasSuffix(name, ".json"):
		return name, true
	default:
		return "", false
	}
}

// defaultCard is what people who have none here mostly ask about.
const defaultCard = "a10"

// cardOf returns the card of a workload: the one it names, this machine's, or
// the default.
func (e *env) cardOf(ctx context.Context, w *workload.Workload) (*gpu.Card, error) {
	id := w.GPU
	if id == "" {
		if card := e.machineCard(ctx); card != nil {
			return card, nil
		}
		id = defaultCard
	}
	card, err := gpu.Find(id)
	if err != nil {
		return nil, badUsage("memorymark gpus lists them", "%w", err)
	}
	return card, nil
}

// machineCard returns this machine's card, nil if it has none.
func (e *env) machineCard(ctx context.Context) *gpu.Card {
	e.machine.Do(func() { e.card, _ = measure.ThisCard(ctx) })
	return e.card
}

// badWorkload turns what is wrong with a workload into an error about the
// command line.
func badWorkload(c *cobra.Command, err error) error {
	var f *failure
	if errors.As(err, &f) {
		return err
	}
	hint := seeHelp(c)
	var p *workload.Problem
	switch {
	case !errors.As(err, &p):
	case p.Key == "model":
		hint = "memorymark models lists them; a config.json of those families will do, too"
	case p.Key == "config" && strings.Contains(p.Error(), "not modelled"):
		hint = "memorymark analyze train.py:make measures a model that cannot be predicted"
	}
	return badUsage(hint, "%w", err)
}

// line writes a value as one line of JSON.
func line(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte(fmt.Sprintf(`{"error":%q}`, err))
	}
	return append(data, '\n')
}
