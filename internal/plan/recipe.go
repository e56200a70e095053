package plan

import (
	"cmp"
	"fmt"
	"strings"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Recipe is how to run an option: text to paste. What an option does not need
// is empty.
type Recipe struct {
	Launch            string `json:"launch"`               // a command line
	Model             string `json:"model"`                // Python that loads the model
	TrainingArguments string `json:"training_arguments"`   // Python, for transformers' Trainer; empty for an optimizer that it does not have
	Accelerate        string `json:"accelerate,omitempty"` // YAML of accelerate config; empty for what it cannot do
	PyTorch           string `json:"pytorch,omitempty"`    // Python that shares the step among GPUs, and makes what Trainer cannot
}

func newRecipe(w *workload.Workload) Recipe {
	return Recipe{
		Launch: settings(w) + launch(w.Parallel), Model: modelCode(w), TrainingArguments: trainingArguments(w),
		Accelerate: accelerateConfig(w), PyTorch: optimizerCode(w) + parallelCode(w),
	}
}

// settings are the environment that the program is started with.
func settings(w *workload.Workload) string {
	if w.ExpandableSegments {
		return "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
	}
	return ""
}

// launch is how the program is started, on each of its machines.
func launch(p *workload.Parallel) string {
	switch {
	case p == nil:
		return "python train.py"
	case p.GPUs <= gpu.MachineGPUs:
		return fmt.Sprintf("torchrun --standalone --nproc-per-node %d train.py", p.GPUs)
	default:
		return fmt.Sprintf("torchrun --nnodes %d --nproc-per-node %d --rdzv-backend c10d --rdzv-endpoint $HOST:29500 train.py",
			p.GPUs/gpu.MachineGPUs, gpu.MachineGPUs)
	}
}

// modelCode loads the model as it was predicted.
func modelCode(w *workload.Workload) string {
	name := w.Name()
	if m, err := workload.FindModel(w.Model); err == nil {
		name = cmp.Or(m.HuggingFaceID, name)
	}
	dtype := "torch.float32"
	if w.Precision == workload.BF16 {
		dtype = "torch.bfloat16"
	}
	var b strings.Builder
	quantized := ""
	if arguments := w.Quantize.Arguments(); arguments != "" {
		fmt.Fprintf(&b, "quantization = BitsAndBytesConfig(%s)\n", arguments)
		quantized, dtype = ", quantization_config=quantization", "torch.bfloat16"
		if w.Parallel != nil { // each process loads its own
			quantized += `, device_map={"": local_rank}`
		}
	}
	fmt.Fprintf(&b, "model = %s.from_pretrained(%q, dtype=%s%s)\n", w.Config.Architecture, name, dtype, quantized)
	if w.ChannelsLast { // and so must images be
		b.WriteString("model = model.to(memory_format=torch.channels_last)\n")
	}
	if quantized != "" {
		b.WriteString("model = prepare_model_for_kbit_training(model)\n")
	}
	if a := w.Adapter; a != nil {
		fmt.Fprintf(&b, "model = get_peft_model(model, LoraConfig(r=%d%s))\n", a.Rank, targetModules(a.Targets))
	}
	return b.String()
}

// targetModules is the argument for the layers that get an adapter, "" for PEFT's
// own.
func targetModules(targets workload.Targets) string {
	switch {
	case len(targets) == 0:
		return ""
	case targets[0] == workload.AllLinear:
		return fmt.Sprintf(", target_modules=%q", workload.AllLinear)
	default:
		return fmt.Sprintf(`, target_modules=["%s"]`, strings.Join(targets, `", "`))
	}
}

// trainingArguments are those of transformers' Trainer, "" where it has no such
// optimizer. bf16 as FSDP's policy comes from the same argument.
func trainingArguments(w *workload.Workload) string {
	optimizer := trainerOptimizer(w)
	if optimizer == "" {
		return ""
	}
	arguments := []string{
		fmt.Sprintf("per_device_train_batch_size=%d", w.Batch),
		fmt.Sprintf("gradient_accumulation_steps=%d", w.Accumulate),
		fmt.Sprintf("optim=%q", optimizer),
	}
	switch {
	case w.Precision == workload.AMPBF16 || w.Parallel != nil && w.Parallel.MixedPrecision != "":
		arguments = append(arguments, "bf16=True")
	case w.Precision == workload.AMPFP16:
		arguments = append(arguments, "fp16=True")
	case w.Precision == workload.TF32:
		arguments = append(arguments, "tf32=True")
	}
	if w.Checkpointing {
		arguments = append(arguments, "gradient_checkpointing=True")
	}
	return "TrainingArguments(\n    " + strings.Join(arguments, ",\n    ") + ",\n)\n"
}

// trainerOptimizer is what TrainingArguments calls the optimizer.
func trainerOptimizer(w *workload.Workload) string {
	if w.Optimizer == workload.AdamW && w.OptimizerImpl == workload.Fused {
		return "adamw_torch_fused"
	}
	if code := w.Optimizer.Code(); code != nil {
		return code.Trainer
	}
	return string(w.Optimizer)
}

// optimizerCode makes two optimizers where one takes only matrices, of what is
// trained: adapters have nothing else. It is "" for others, which people know.
func optimizerCode(w *workload.Workload) string {
	code := w.Optimizer.Code()
	if code == nil || code.Beside == nil {
		return ""
	}
	impl := map[workload.Impl]string{workload.Fused: ", fused=True", workload.Loop: ", foreach=False"}[w.OptimizerImpl]
	return code.Split + fmt.Sprintf(`optimizers = [torch.optim.%s(matrices)]
if others:
    optimizers.append(torch.optim.%s(others%s))
`, code.Class, code.Beside.Class, impl)
}

// accelerateConfig is the file that accelerate config writes (accelerate 1.15,
// commands/config/cluster.py). It knows no ZeroRedundancyOptimizer, and no
// tensor parallelism without FSDP.
func accelerateConfig(w *workload.Workload) string {
	p, n, kind := w.Parallel, int64(1), "'NO'"
	if p != nil {
		n, kind = p.GPUs, "FSDP"
		switch p.Kind {
		case workload.DDP:
			kind = "MULTI_GPU"
		case workload.ZeRO1, workload.TensorParallel:
			return ""
		}
	}
	mixed := "'no'"
	switch {
	case w.Precision == workload.AMPBF16 || p != nil && p.MixedPrecision != "":
		mixed = "bf16"
	case w.Precision == workload.AMPFP16:
		mixed = "fp16"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "compute_environment: LOCAL_MACHINE\ndistributed_type: %s\nmixed_precision: %s\nnum_machines: %d\nnum_processes: %d\n",
		kind, mixed, (n+gpu.MachineGPUs-1)/gpu.MachineGPUs, n)
	if kind == "FSDP" {
		fmt.Fprintf(&b, "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_reshard_after_forward: %t\n  fsdp_offload_params: %t\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
			p.Reshards(), p.Offload)
	}
	const prefix = "parallelism_config:\n  parallelism_config_"
	if p != nil && p.Kind == workload.HSDP {
		fmt.Fprintf(&b, prefix+"dp_replicate_size: %d\n  parallelism_config_dp_shard_size: %d\n", n/p.Shard, p.Shard)
	}
	if p != nil && p.Kind == workload.FSDPWithTensor {
		fmt.Fprintf(&b, prefix+"dp_shard_size: %d\n  parallelism_config_tp_size: %d\n", n/p.Tensor, p.Tensor)
	}
	return b.String()
}

// parallelCode is the same in plain PyTorch, as it was predicted.
func parallelCode(w *workload.Workload) string {
	p := w.Parallel
	if p == nil {
		return ""
	}
	device := `torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", local_rank))` + "\n"
	switch p.Kind {
	case workload.DDP:
		return device + "model = DistributedDataParallel(model, device_ids=[local_rank])\n"
	case workload.ZeRO1:
		return device + "model = DistributedDataParallel(model, device_ids=[local_rank])\n" +
			"optimizer = ZeroRedundancyOptimizer([p for p in model.parameters() if p.requires_grad], optimizer_class=torch.optim.AdamW)\n"
	case workload.TensorParallel:
		return device + fmt.Sprintf("mesh = init_device_mesh(\"cuda\", (%d,))\n", p.GPUs) + tensorPlan + parallelizeLayers("mesh")
	case workload.HSDP:
		return device + fmt.Sprintf("mesh = init_device_mesh(\"cuda\", (%d, %d), mesh_dim_names=(\"replicate\", \"shard\"))\n", p.GPUs/p.Shard, p.Shard) +
			shardLayers(p, "mesh")
	case workload.FSDPWithTensor:
		return device + fmt.Sprintf("mesh = init_device_mesh(\"cuda\", (%d, %d), mesh_dim_names=(\"dp\", \"tp\"))\n", p.GPUs/p.Tensor, p.Tensor) +
			tensorPlan + parallelizeLayers(`mesh["tp"]`) + shardLayers(p, `mesh["dp"]`)
	default:
		return device + fmt.Sprintf("mesh = init_device_mesh(\"cuda\", (%d,))\n", p.GPUs) + shardLayers(p, "mesh")
	}
}

// shardLayers applies fully_shard to every layer, then to the model.
func shardLayers(p *workload.Parallel, mesh string) string {
	var options string
	if p.MixedPrecision != "" {
		options += ", mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)"
	}
	if !p.Reshards() {
		options += ", reshard_after_forward=False"
	}
	if p.Offload {
		options += ", offload_policy=CPUOffloadPolicy()"
	}
	return fmt.Sprintf("for layer in layers:  # every decoder or encoder layer\n    fully_shard(layer, mesh=%[1]s%[2]s)\nfully_shard(model, mesh=%[1]s%[2]s)\n", mesh, options)
}

func parallelizeLayers(mesh string) string {
	return fmt.Sprintf("for layer in layers:\n    parallelize_module(layer, %s, plan)\n", mesh)
}

const tensorPlan = `plan = {
    "self_attn.q_proj": ColwiseParallel(), "self_attn.k_proj": ColwiseParallel(),
    "self_attn.v_proj": ColwiseParallel(), "self_attn.o_proj": RowwiseParallel(),
    "mlp.gate_proj": ColwiseParallel(), "mlp.up_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel(),
}
`
