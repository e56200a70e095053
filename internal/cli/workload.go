package cli

import (
	"cmp"
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

	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/invalid"
	"memorymark/internal/measure"
	"memorymark/internal/workload"
)

// workloadFlags are the flags that say what is trained, one for each key of a
// workload but the model.
type workloadFlags struct{ set *pflag.FlagSet }

func (e *env) addWorkloadFlags(c *cobra.Command) *workloadFlags {
	return e.addFlagsOf(c, workload.KeyNames())
}

// addFlagsOf adds the flags of some keys. The model is an argument.
func (e *env) addFlagsOf(c *cobra.Command, names []string) *workloadFlags {
	e.addDownload(c)
	for _, key := range workload.Keys() {
		if key.Name == "model" || !slices.Contains(names, key.Name) {
			continue
		}
		takeAlso(c, key)
		addFlag(c, flagName(key.Name), key)
		for _, f := range key.Fields {
			addFlag(c, f.Flag, workload.Key{Name: f.Name, Kind: f.Kind, Unit: f.Unit, Help: f.Help})
		}
	}
	return &workloadFlags{c.Flags()}
}

func addFlag(c *cobra.Command, name string, k workload.Key) {
	if k.Kind == workload.Switch {
		c.Flags().Bool(name, false, flagHelp(k))
		return
	}
	c.Flags().String(name, "", flagHelp(k))
	showValueAs(c.Flags(), name, k.Unit)
}

// namedValue is the value of a flag, and the word that stands for it in help.
type namedValue struct {
	pflag.Value
	name string
}

func (v namedValue) Type() string { return v.name }

// showValueAs has help write --batch N, if that is the word.
func showValueAs(flags *pflag.FlagSet, flag, word string) {
	f := flags.Lookup(flag)
	f.Value = namedValue{f.Value, word}
}

// flagHelp is what the help says of a key: its meaning, what it can be, and
// its default.
func flagHelp(k workload.Key) string {
	help := lowerFirst(k.Help)
	if k.Name == "gpu" {
		help += ", or a path to your own card.json"
	}
	switch choices := workload.Choices(k.Name); {
	case choices != nil:
		last := len(choices) - 1
		help += fmt.Sprintf(" (%s or %s; default %s)", strings.Join(choices[:last], ", "), choices[last], choices[0])
	case k.Else != "":
		help += " (default: " + k.Else + ")"
	case k.Kind == workload.Whole && k.Default != nil:
		help += fmt.Sprintf(" (default %v)", k.Default)
	}
	for _, other := range k.Also {
		help += "; also --" + other
	}
	if k.Unit == "GiB" {
		help += " 22GiB"
	}
	return help
}

// lowerFirst begins a sentence in lower case, unless its first word is a name.
func lowerFirst(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if word[1:] != strings.ToLower(word[1:]) { // as in PyTorch
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// takeAlso lets the flag of a key go by its other names, too.
func takeAlso(c *cobra.Command, key workload.Key) {
	for _, other := range key.Also {
		alsoNamed(c, flagName(key.Name), other)
	}
}

// alsoNamed lets a flag of a command go by another name, too.
func alsoNamed(c *cobra.Command, flag, other string) {
	before := c.Flags().GetNormalizeFunc()
	c.Flags().SetNormalizeFunc(func(set *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == other {
			return pflag.NormalizedName(flag)
		}
		return before(set, name)
	})
}

func flagName(key string) string { return strings.ReplaceAll(key, "_", "-") }

// apply sets the keys that flags were given for.
func (f *workloadFlags) apply(d workload.Draft) {
	for _, key := range workload.Keys() {
		if text, given := f.given(flagName(key.Name)); given {
			d.Set(key.Name, text)
		}
		for _, field := range key.Fields {
			if text, given := f.given(field.Flag); given {
				d.SetField(key.Name, field, text)
			}
		}
	}
}

// given is what a flag was given, if it was.
func (f *workloadFlags) given(name string) (text string, given bool) {
	flag := f.set.Lookup(name)
	if flag == nil || !flag.Changed {
		return "", false
	}
	return flag.Value.String(), true
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
		return nil, badInput("write one workload per line, such as {\"model\": \"bert\", \"batch\": 8}", "%s: the file has no workload", path)
	}
	return entries, nil
}

// finish makes a workload of a draft. Its model may be a path to a config.json, or
// to a folder with one, or an id of the Hugging Face Hub. A family that is not modelled is an error only if PyTorch
// may not run it.
func (e *env) finish(ctx context.Context, d workload.Draft, engine evidence.Engine) (*workload.Workload, error) {
	if err := errors.Join(e.readConfig(ctx, d), e.readLengths(d)); err != nil {
		return nil, err
	}
	w, err := d.Workload()
	if engine.RunsSteps() && err != nil || engine == evidence.Auto && workload.Unmodelled(err) {
		return d.Runnable()
	}
	return w, err
}

// readConfig reads the config.json that a draft's model is a path to, or that the
// Hugging Face Hub has under its name, if it is one of these.
func (e *env) readConfig(ctx context.Context, d workload.Draft) error {
	name := d.Text("model")
	if _, err := workload.FindModel(name); name == "" || err == nil {
		return nil
	}
	path, ok := configFile(name)
	if !ok {
		return e.readHub(ctx, d, name)
	}
	data, err := e.readAll(path)
	if err != nil {
		return err
	}
	if err := d.UseConfig(data); err != nil {
		return badInput("", "%s: %w", path, err)
	}
	return nil
}

// readLengths reads the file that a draft's lengths are a path to, if they are.
func (e *env) readLengths(d workload.Draft) error {
	path := d.Text("lengths")
	if path == "" {
		return nil
	}
	data, err := e.readAll(path)
	if err != nil {
		return err
	}
	lengths, err := workload.ReadLengths(data)
	if err == nil {
		d["lengths"], err = json.Marshal(lengths)
	}
	if err != nil {
		return badInput("write what len() gives for each sample, one number a line", "%s: %w", path, err)
	}
	return nil
}

// configFile returns the configuration that a model's name means, if it is one
// of a file that exists or could only be a file's, or - for standard input.
func configFile(name string) (string, bool) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return filepath.Join(name, "config.json"), true
	case err == nil, name == "-", strings.HasSuffix(name, ".json"):
		return name, true
	default:
		return "", false
	}
}

// cardOf returns the card of a workload: the one it names, this machine's, or
// the default.
func (e *env) cardOf(ctx context.Context, w *workload.Workload) (*gpu.Card, error) {
	return e.namedCard(ctx, w.GPU)
}

// namedCard returns the card of an id, this machine's if there is none, or the
// default.
func (e *env) namedCard(ctx context.Context, id string) (*gpu.Card, error) {
	return e.cardOr(ctx, id, gpu.Default)
}

// cardOr is namedCard with a default of its own.
func (e *env) cardOr(ctx context.Context, id, otherwise string) (*gpu.Card, error) {
	if id == "" {
		return gpu.Unnamed(e.machineCard(ctx), otherwise)
	}
	return e.findCard(id)
}

// findCard returns a card of the catalog, or the one that a file describes.
// Such a card goes by the path of its file, so that no answer about it passes
// for one about a card of the catalog.
func (e *env) findCard(name string) (*gpu.Card, error) {
	card, err := gpu.Find(name)
	if err == nil {
		return card, nil
	}
	if !strings.EqualFold(filepath.Ext(name), ".json") {
		return nil, badUsage("memorymark gpus lists them; memorymark gpus --help explains how to describe another", "%w", err)
	}
	data, err := e.readAll(name)
	if err != nil {
		return nil, err
	}
	if card, err = gpu.Read(data); err != nil {
		return nil, badInput("memorymark gpus --help explains the file", "%s: %w", name, err)
	}
	card.ID, card.Name = name, cmp.Or(card.Name, name)
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
	var p *invalid.Problem
	switch {
	case !errors.As(err, &p):
	case errors.Is(p, workload.ErrNoModel):
		return badUsage(fmt.Sprintf("give one, such as %s bert; memorymark models lists them, and a path to a config.json works too", c.CommandPath()), "missing MODEL")
	case p.Key == "model":
		hint = "memorymark models lists them; a config.json of one of their families works too"
	case p.Key == "batch":
		hint = "give one batch as a number; memorymark analyze finds the largest one that trains"
	case p.Key == "config" && strings.Contains(p.Error(), "not modelled"):
		hint = "--engine emulated runs it with your PyTorch on an emulated GPU"
	case p.Key == "versions" && workload.Unmodelled(err):
		hint = "--engine emulated runs it on an emulated GPU, with a Python that has these versions (--python)"
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
