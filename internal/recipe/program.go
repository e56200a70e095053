package recipe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/models"
	"memorymark/internal/workload"
)

// program is train.py while it is written.
type program struct {
	w       *workload.Workload
	imports map[string][]string // names by module; "" of those that are imported whole
	body    []string
}

// use has a name imported.
func (p *program) use(module string, names ...string) {
	for _, name := range names {
		if !slices.Contains(p.imports[module], name) {
			p.imports[module] = append(p.imports[module], name)
		}
	}
}

// add writes lines.
func (p *program) add(lines ...string) { p.body = append(p.body, lines...) }

// addIf writes a line if it holds.
func (p *program) addIf(holds bool, line string) {
	if holds {
		p.add(line)
	}
}

// text is the whole program.
func (p *program) text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(p.imports[""])) {
		fmt.Fprintf(&b, "import %s\n", name)
	}
	for _, module := range slices.Sorted(maps.Keys(p.imports)) {
		if module == "" {
			continue
		}
		names := slices.Sorted(slices.Values(p.imports[module]))
		line := fmt.Sprintf("from %s import %s", module, strings.Join(names, ", "))
		if len(line) > width {
			line = call("from "+module+" import ", names...)
		}
		b.WriteString(line + "\n")
	}
	return b.String() + "\n" + strings.Join(p.body, "\n") + "\n"
}

func (p *program) write() {
	p.use("", "torch")
	p.setUp()
	p.loadModel()
	switch p.w.Loop.OrPlain().Name {
	case workload.TrainerLoop:
		p.trainer()
	case workload.LightningLoop:
		p.lightning()
	case workload.AccelerateLoop:
		p.accelerate()
	default:
		p.plain()
	}
}

// setUp is what comes before the model.
func (p *program) setUp() {
	bins, _ := p.w.Features()
	convolutions := p.w.TakesImages() || bins > 0
	p.addIf(p.w.Precision == workload.TF32, `torch.set_float32_matmul_precision("high")`)
	p.addIf(p.w.Precision == workload.FP32 && convolutions, "torch.backends.cudnn.allow_tf32 = False")
	if p.w.Parallel != nil && !p.w.Loop.IsLibrarys() {
		p.use("", "os", "torch.distributed as dist")
		p.add(`local_rank = int(os.environ["LOCAL_RANK"])`, `device = torch.device("cuda", local_rank)`,
			"torch.cuda.set_device(device)", `dist.init_process_group("nccl", device_id=device)`)
	}
	if len(p.body) > 0 {
		p.add("")
	}
}

// loadModel makes the model and what is trained of it.
func (p *program) loadModel() {
	w := p.w
	switch {
	case w.Config.ModelType == torchvisionResNet:
		p.torchvision()
	case p.sharded():
		p.onMeta()
	case w.Quantize != workload.NotQuantized:
		p.quantize()
	default:
		p.loadPretrained()
	}
	p.addIf(w.ChannelsLast, "model.to(memory_format=torch.channels_last)")
	if w.Checkpointing && w.Quantize == workload.NotQuantized {
		p.add(`model.gradient_checkpointing_enable({"use_reentrant": False})`)
	}
	p.addIf(w.Checkpointing && p.generates(), "model.config.use_cache = False")
	p.adapt()
}

// sharded reports whether each GPU has a part of the parameters.
func (p *program) sharded() bool {
	return p.w.Parallel != nil && p.w.Parallel.Kind != workload.DDP && p.w.Parallel.Kind != workload.ZeRO1
}

// generates reports whether the model keeps keys and values of what it has read.
func (p *program) generates() bool {
	return slices.ContainsFunc([]string{"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"},
		func(head string) bool { return strings.HasSuffix(p.head().Architecture, head) })
}

// checkpoint is where the weights are, "" where there is only a configuration.
func (p *program) checkpoint() string {
	m, err := workload.FindModel(p.w.Model)
	if err != nil || jsonOf(m.Config) != jsonOf(p.w.Config) {
		return ""
	}
	return m.HuggingFaceID
}

// arguments are those of from_pretrained after the checkpoint.
func (p *program) arguments() []string {
	out := []string{"dtype=" + dtypes[p.w.Run().DType]}
	if p.w.Attention == workload.Eager {
		out = append(out, `attn_implementation="eager"`)
	}
	return out
}

// loadPretrained loads a checkpoint on the host, or makes the model of its configuration.
func (p *program) loadPretrained() {
	class := p.head().Architecture
	p.use("transformers", class)
	id := p.checkpoint()
	if id != "" && !p.onDevice() {
		p.add(call("model = "+class+".from_pretrained", append([]string{quote(id)}, p.arguments()...)...))
		return
	}
	p.config()
	p.make("model = "+class+"._from_config", append([]string{"config"}, p.arguments()...)...)
}

// make calls what makes a model of random weights, where the loop makes it.
func (p *program) make(prefix string, arguments ...string) {
	if !p.onDevice() {
		p.add(call(prefix, arguments...))
		return
	}
	p.add(`with torch.device("cuda"):`, call("    "+prefix, arguments...), "# The weights are random. Load yours with model.load_state_dict.")
}

// onDevice reports whether the loop makes the model on the device. No library does.
func (p *program) onDevice() bool { return p.w.Loop.OrPlain().Build == workload.BuildOnDevice }

// config makes a configuration.
func (p *program) config() {
	p.use("transformers", "AutoConfig")
	if id := p.checkpoint(); id != "" {
		p.add(call("config = AutoConfig.from_pretrained", quote(id)))
		return
	}
	p.add(call("config = AutoConfig.for_model", p.configArguments()...))
}

// configArguments are the keys of a configuration in Python.
func (p *program) configArguments() []string {
	out := []string{quote(p.w.Config.ModelType)}
	data, err := json.Marshal(p.w.Config)
	var keys map[string]any
	if err == nil {
		err = json.Unmarshal(data, &keys)
	}
	if err != nil { // it was read from JSON
		panic(err)
	}
	for _, id := range p.head().Needs {
		if keys[id] == nil {
			keys[id] = 0.
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if key != "model_type" && !slices.Contains(decided, key) {
			out = append(out, key+"="+python(keys[key]))
		}
	}
	return out
}

// decided are keys of a configuration that the workload decides, or that name what is
// not in it: files and code.
var decided = []string{
	"architectures", "attn_implementation", "_attn_implementation", "auto_map", "custom_pipelines", "dtype", "torch_dtype",
	"name_or_path", "_name_or_path", "_commit_hash", "transformers_version",
}

// quantize loads weights as bitsandbytes stores them, on the device.
func (p *program) quantize() {
	w, class := p.w, p.head().Architecture
	compute := dtypes[w.Run().Compute]
	p.use("transformers", class, "BitsAndBytesConfig")
	p.use("peft", "prepare_model_for_kbit_training")
	p.add(call("quantization = BitsAndBytesConfig", bitsAndBytes(w.Quantize, compute)...))
	place := `device_map={"": "cuda"}`
	if w.Parallel != nil {
		place = `device_map={"": local_rank}`
	}
	arguments := []string{quote(cmp.Or(p.checkpoint(), "path/to/checkpoint")), "dtype=" + compute}
	p.add(call("model = "+class+".from_pretrained", append(arguments, append(p.arguments()[1:], "quantization_config=quantization", place)...)...))
	p.add(call("model = prepare_model_for_kbit_training", "model", "use_gradient_checkpointing="+python(w.Checkpointing),
		`gradient_checkpointing_kwargs={"use_reentrant": False}`))
}

// bitsAndBytes are the arguments of BitsAndBytesConfig.
func bitsAndBytes(q workload.Quantize, compute string) []string {
	if q == workload.Int8 {
		return []string{"load_in_8bit=True"}
	}
	out := []string{"load_in_4bit=True", `bnb_4bit_quant_type="nf4"`, "bnb_4bit_compute_dtype=" + compute}
	if q == workload.NF4Double {
		out = append(out, "bnb_4bit_use_double_quant=True")
	}
	return out
}

// torchvision makes a ResNet of torchvision.
func (p *program) torchvision() {
	keys := map[string]any{"block": "Bottleneck", "layers": []any{3., 4., 6., 3.}}
	data, err := json.Marshal(p.w.Config)
	if err == nil {
		err = json.Unmarshal(data, &keys)
	}
	if err != nil { // it was read from JSON
		panic(err)
	}
	block := keys["block"].(string)
	p.use("torchvision.models.resnet", "ResNet", block)
	arguments := []string{block, python(keys["layers"])}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains([]string{"block", "layers", "model_type", "architectures"}, key) {
			arguments = append(arguments, key+"="+python(keys[key]))
		}
	}
	p.addIf(p.w.Precision == workload.BF16, "torch.set_default_dtype(torch.bfloat16)")
	p.make("model = ResNet", arguments...)
	p.addIf(p.w.Precision == workload.BF16, "torch.set_default_dtype(torch.float32)")
}

// adapt is what PEFT does.
func (p *program) adapt() {
	a := p.w.Adapter
	if a == nil {
		return
	}
	p.use("peft", "LoraConfig", "get_peft_model")
	arguments := []string{fmt.Sprintf("r=%d", a.Rank)}
	if len(a.Targets) > 0 {
		arguments = append(arguments, "target_modules="+jsonOf(a.Targets))
	}
	if a.Dropout > 0 {
		arguments = append(arguments, fmt.Sprintf("lora_dropout=%v", a.Dropout))
	}
	if a.DoRA {
		arguments = append(arguments, "use_dora=True")
	}
	if len(a.ModulesToSave) > 0 {
		arguments = append(arguments, "modules_to_save="+jsonOf(a.ModulesToSave))
	}
	if a.TaskType != "" {
		arguments = append(arguments, "task_type="+quote(string(a.TaskType)))
	}
	p.add(call("lora = LoraConfig", arguments...))
	quantized := p.w.Quantize != workload.NotQuantized
	switch {
	case p.w.Float32Adapters():
		p.add("model = get_peft_model(model, lora)")
	case quantized:
		p.add("model = get_peft_model(model, lora).to(torch.bfloat16)")
	default:
		p.add(call("model = get_peft_model", "model", "lora", "autocast_adapter_dtype=False"))
	}
}

// optimizerCall makes the optimizer of some parameters, after a prefix.
func (p *program) optimizerCall(prefix string, c *workload.Code, parameters string) string {
	arguments := []string{parameters}
	return call(prefix+p.class(c), append(arguments, p.settings(c)...)...)
}

// settings are an optimizer's arguments after the parameters.
func (p *program) settings(c *workload.Code) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(c.Arguments)) {
		out = append(out, key+"="+strconv.FormatFloat(c.Arguments[key], 'g', -1, 64))
	}
	return append(out, p.implementation(c)...)
}

// keywords are the settings as entries of a mapping.
func (p *program) keywords(c *workload.Code) []string {
	out := p.settings(c)
	for i, setting := range out {
		key, value, _ := strings.Cut(setting, "=")
		out[i] = fmt.Sprintf("%q: %s", key, value)
	}
	return out
}

// class is the class of an optimizer, imported.
func (p *program) class(c *workload.Code) string {
	if c.Module == "" {
		return "torch.optim." + c.Class
	}
	p.use(c.Module, c.Class)
	return c.Class
}

// implementation is how one of PyTorch's optimizers computes, where that is not its
// default.
func (p *program) implementation(c *workload.Code) []string {
	switch impl := p.w.OptimizerImpl; {
	case c.Module != "":
		return nil
	case impl == workload.Fused:
		return []string{"fused=True"}
	case impl == workload.Loop:
		return []string{"foreach=False"}
	case p.w.Optimizer == "adafactor": // its default is not foreach
		return []string{"foreach=True"}
	default:
		return nil
	}
}

// optimizer makes the optimizer of what is trained, or two of them.
func (p *program) optimizer() {
	code := p.w.Optimizer.Code()
	switch {
	case code == nil:
		return
	case code.Companion != nil:
		p.add(strings.Split(strings.TrimSuffix(code.Split, "\n"), "\n")...)
		p.add("optimizers = ["+p.optimizerCall("", code, "matrices")+"]", "if others:",
			p.optimizerCall("    second = ", code.Companion, "others"), "    optimizers.append(second)")
		return
	}
	p.add("trained = [p for p in model.parameters() if p.requires_grad]")
	if p.w.Parallel != nil && p.w.Parallel.Kind == workload.ZeRO1 {
		p.use("torch.distributed.optim", "ZeroRedundancyOptimizer")
		arguments := []string{"trained", "optimizer_class=" + p.class(code)}
		p.add(call("optimizer = ZeroRedundancyOptimizer", append(arguments, p.settings(code)...)...))
		return
	}
	p.add(p.optimizerCall("optimizer = ", code, "trained"))
}

// head is how the model is called.
func (p *program) head() *models.Head {
	_, head, err := models.Find(p.w.Config)
	if err != nil { // a workload has a model that is known
		panic(err)
	}
	return head
}

func quote(text string) string { return strconv.Quote(text) }

func jsonOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // names
		panic(err)
	}
	return strings.ReplaceAll(string(data), ",", ", ")
}

// python is a value of JSON in Python.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return quote(v)
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = python(x)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !slices.Contains(decided, key) {
				parts = append(parts, quote(key)+": "+python(v[key]))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}
