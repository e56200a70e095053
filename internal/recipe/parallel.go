package recipe

import (
	"fmt"

	"memorymark/internal/workload"
)

// onMeta makes a model without memory, whose parts get it where they are.
func (p *program) onMeta() {
	class := p.head().Architecture
	p.use("transformers", class)
	p.config()
	p.add(`with torch.device("meta"):`, call("    model = "+class+"._from_config", append([]string{"config"}, p.arguments()...)...))
}

// parallelize shares the step among GPUs.
func (p *program) parallelize() {
	w := p.w
	if w.Parallel == nil {
		return
	}
	switch w.Parallel.Kind {
	case workload.DDP, workload.ZeRO1:
		p.replicate()
	case workload.TensorParallel:
		p.mesh([]string{"tp"}, w.Parallel.GPUs)
		p.layers()
		p.splitMatrices("mesh")
		p.fill()
	case workload.HSDP:
		p.mesh([]string{"replicate", "shard"}, w.Parallel.GPUs/w.Parallel.Shard, w.Parallel.Shard)
		p.layers()
		p.shard("mesh")
	case workload.FSDPWithTensor:
		p.mesh([]string{"dp", "tp"}, w.Parallel.GPUs/w.Parallel.Tensor, w.Parallel.Tensor)
		p.layers()
		p.splitMatrices(`mesh["tp"]`)
		p.shard(`mesh["dp"]`)
	default:
		p.mesh([]string{"shard"}, w.Parallel.GPUs)
		p.layers()
		p.shard("mesh")
	}
}

// replicate is DistributedDataParallel.
func (p *program) replicate() {
	p.use("torch.nn.parallel", "DistributedDataParallel")
	arguments := []string{"model"}
	if p.w.Parallel.GradientAsBucketView {
		arguments = append(arguments, "gradient_as_bucket_view=True")
	}
	if p.w.Parallel.StaticGraph {
		arguments = append(arguments, "static_graph=True")
	}
	p.add(call("model = DistributedDataParallel", arguments...))
}

// mesh lays out the GPUs.
func (p *program) mesh(names []string, sizes ...int64) {
	p.use("torch.distributed.device_mesh", "init_device_mesh")
	shape := "("
	for _, n := range sizes {
		shape += fmt.Sprintf("%d, ", n)
	}
	shape = shape[:len(shape)-1] + ")"
	if len(sizes) > 1 {
		shape = shape[:len(shape)-2] + ")"
		p.add(call("mesh = init_device_mesh", `"cuda"`, shape, fmt.Sprintf("mesh_dim_names=(%q, %q)", names[0], names[1])))
		return
	}
	p.add(call("mesh = init_device_mesh", `"cuda"`, shape))
}

// layers finds the layers that are shared one by one: those of the longest list.
func (p *program) layers() {
	p.add("lists = (m for m in model.modules() if isinstance(m, torch.nn.ModuleList))", "layers = max(lists, key=len)")
}

// splitMatrices is tensor parallelism of a Llama's layers.
func (p *program) splitMatrices(mesh string) {
	p.use("torch.distributed.tensor.parallel", "ColwiseParallel", "RowwiseParallel", "parallelize_module")
	p.add("plan = {")
	for _, x := range []struct{ name, how string }{
		{"self_attn.q_proj", "Colwise"},
		{"self_attn.k_proj", "Colwise"},
		{"self_attn.v_proj", "Colwise"},
		{"self_attn.o_proj", "Rowwise"},
		{"mlp.gate_proj", "Colwise"},
		{"mlp.up_proj", "Colwise"},
		{"mlp.down_proj", "Rowwise"},
	} {
		p.add(fmt.Sprintf("    %q: %sParallel(),", x.name, x.how))
	}
	p.add("}", "for layer in layers:", fmt.Sprintf("    parallelize_module(layer, %s, plan)", mesh))
}

// shard applies fully_shard to every layer, then to the model.
func (p *program) shard(mesh string) {
	w := p.w.Parallel
	p.use("torch.distributed.fsdp", "fully_shard")
	options := []string{"mesh=" + mesh}
	if w.MixedPrecision != "" {
		p.use("torch.distributed.fsdp", "MixedPrecisionPolicy")
		p.add(call("policy = MixedPrecisionPolicy", "param_dtype=torch.bfloat16", "reduce_dtype=torch.float32"))
		options = append(options, "mp_policy=policy")
	}
	if !w.Reshards() {
		options = append(options, "reshard_after_forward=False")
	}
	if w.Offload {
		p.use("torch.distributed.fsdp", "CPUOffloadPolicy")
		options = append(options, "offload_policy=CPUOffloadPolicy()")
	}
	p.add("for layer in layers:", call("    fully_shard", append([]string{"layer"}, options...)...))
	p.add(call("fully_shard", append([]string{"model"}, options...)...))
	p.fill()
}

// fill gives a model on the meta device its memory.
func (p *program) fill() {
	if p.w.Parallel.Offload {
		p.add(`model.to_empty(device="cpu")`, "for buffer in model.buffers():", "    buffer.data = buffer.data.cuda()")
	} else {
		p.add(`model.to_empty(device="cuda")`)
	}
	p.add("# Load weights and buffers here, as with torch.distributed.checkpoint.")
}
