package recipe

import (
	"fmt"
	"strings"

	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

var dtypes = map[torch.DType]string{torch.Float32: "torch.float32", torch.BFloat16: "torch.bfloat16", torch.Float16: "torch.float16"}

// plain writes the loop by hand.
func (p *program) plain() {
	w := p.w
	p.place()
	p.setMode()
	p.parallelize()
	p.optimizer()
	p.addIf(p.scaled(), "scaler = torch.amp.GradScaler()")
	p.addIf(w.Precision == workload.AMPFP16 && !p.scaled(), `# Small gradients are lost in fp16: scale the loss, as --loop '{"scaler": "grad"}'.`)
	p.draw()
	p.add("", "for step in range(3):")
	p.passes()
	if w.Optimizer != workload.NoOptimizer {
		p.update()
	}
	p.zeroGrad(workload.ZeroAfterStep)
}

// setMode puts the model in its mode.
func (p *program) setMode() {
	if p.w.Mode == workload.Training {
		p.add("model.train()")
	} else {
		p.add("model.eval()")
	}
}

// update writes the step of the optimizer, and what comes before it.
func (p *program) update() {
	if p.w.ClipGradNorm && p.scaled() {
		p.each("    ", "scaler.unscale_(optimizer)")
	}
	p.addIf(p.w.ClipGradNorm, "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)")
	if !p.scaled() {
		p.each("    ", "optimizer.step()")
		return
	}
	p.each("    ", "scaler.step(optimizer)")
	p.add("    scaler.update()")
}

// each writes what is done with the optimizer, or with each of two.
func (p *program) each(indent, line string) {
	if code := p.w.Optimizer.Code(); code != nil && code.Companion != nil {
		p.add(indent + "for optimizer in optimizers:")
		indent += "    "
	}
	p.add(indent + line)
}

// scaled reports whether the loss is scaled by hand.
func (p *program) scaled() bool { return p.w.Loop.Scaler == workload.GradScaler }

// zeroGrad drops the gradients of the step before, if this is where the loop does so.
func (p *program) zeroGrad(here workload.ZeroGrad) {
	indent := "    "
	switch {
	case p.w.Loop.OrPlain().ZeroGrad != here:
		return
	case here == workload.ZeroBeforeBackward && p.w.Accumulate > 1:
		p.add("        if i == 0:")
		indent = "            "
	}
	if p.w.Optimizer == workload.NoOptimizer {
		p.add(indent + "model.zero_grad()")
	} else {
		p.each(indent, "optimizer.zero_grad()")
	}
}

// passes writes forward and backward, as often as gradients are accumulated. The share
// of a pass in the mean is its first gradient, which takes no memory of its own: it is
// in the place of a one.
func (p *program) passes() {
	w, indent, share := p.w, "    ", ""
	kept := w.Loop.Outputs == workload.OutputsKept
	p.zeroGrad(workload.ZeroBeforeForward)
	if w.Accumulate > 1 {
		p.add(fmt.Sprintf("    for i in range(%d):", w.Accumulate))
		indent = "        "
		share = fmt.Sprintf("torch.full_like(loss, 1 / %d)", w.Accumulate)
		p.addIf(!kept, indent+"if i > 0:")
		p.addIf(!kept, indent+"    del loss  # and what is left of its graph")
	}
	inner := indent
	if cast := autocast[w.Precision]; cast != "" {
		p.add(fmt.Sprintf(`%swith torch.autocast("cuda", %s):`, indent, cast))
		inner += "    "
	}
	outputs, loss := p.forward()
	if kept {
		p.add(inner+"outputs = "+outputs, inner+"loss = "+fmt.Sprintf(loss, "outputs"))
	} else {
		p.add(inner + "loss = " + fmt.Sprintf(loss, outputs))
	}
	p.zeroGrad(workload.ZeroBeforeBackward)
	if p.scaled() {
		p.add(indent + "scaler.scale(loss).backward(" + share + ")")
	} else {
		p.add(indent + "loss.backward(" + share + ")")
	}
}

// autocast are the types of autocast.
var autocast = map[workload.Precision]string{workload.AMPBF16: "torch.bfloat16", workload.AMPFP16: "torch.float16"}

// forward is the Python of a forward pass: the call of the model, and the loss, in which
// %s stands for what the model returns.
func (p *program) forward() (outputs, loss string) {
	switch vision := p.w.Config.ModelType == torchvisionResNet; {
	case vision && p.w.Loss == workload.MeanLogits:
		return `model(batch["pixel_values"])`, "%s.mean()"
	case vision:
		p.use("torch.nn.functional", "cross_entropy")
		return `model(batch["pixel_values"])`, `cross_entropy(%s, batch["labels"])`
	case p.w.Loss == workload.MeanLogits:
		return "model(**batch)", "%s.logits.mean()"
	default:
		return "model(**batch)", "%s.loss"
	}
}

// place moves the model to the device, if it is not there.
func (p *program) place() {
	if p.w.Quantize == workload.NotQuantized && !p.sharded() && !p.onDevice() {
		p.add(`model.to("cuda")`)
	}
}

// rows writes a data set.
func (p *program) rows() {
	p.add("", "", "class Rows(torch.utils.data.Dataset):",
		`    """Random samples. Put your data here."""`, "",
		"    def __len__(self):", fmt.Sprintf("        return %d", p.w.Batch*int64(p.w.Accumulate)*4), "",
		"    def __getitem__(self, i):")
	p.drawBatch(true, "        ", "return {")
	p.add("", "")
}

// trainer writes the loop of Hugging Face's Trainer.
func (p *program) trainer() {
	w := p.w
	p.use("transformers", "Trainer", "TrainingArguments")
	p.rows()
	arguments := []string{`output_dir="out"`, fmt.Sprintf("per_device_train_batch_size=%d", w.Batch)}
	for _, x := range []struct {
		when bool
		text string
	}{
		{w.Accumulate > 1, fmt.Sprintf("gradient_accumulation_steps=%d", w.Accumulate)},
		{w.Precision == workload.AMPBF16, "bf16=True"},
		{w.Precision == workload.AMPFP16, "fp16=True"},
		{!w.ClipGradNorm, "max_grad_norm=0.0"},
		{w.ClipGradNorm, "max_grad_norm=1.0"},
		{true, "max_steps=3"},
		{true, `save_strategy="no"`},
		{true, "report_to=[]"},
	} {
		if x.when {
			arguments = append(arguments, x.text)
		}
	}
	code := w.Optimizer.Code()
	given := ""
	switch named := w.Optimizer == workload.AdamW && w.OptimizerImpl != workload.Loop; {
	case named && w.OptimizerImpl == workload.Fused:
		arguments = append(arguments, `optim="adamw_torch_fused"`)
	case named, code.Module != "", w.Optimizer == "adafactor":
		arguments = append(arguments, "optim="+quote(code.Trainer))
	default:
		given = fmt.Sprintf("(%s, {%s})", p.class(code), strings.Join(p.keywords(code), ", "))
	}
	p.add(call("arguments = TrainingArguments", arguments...))
	made := []string{"model", "arguments", "train_dataset=Rows()"}
	if given != "" {
		made = append(made, "optimizer_cls_and_kwargs="+given)
	}
	p.add(call("trainer = Trainer", made...), "trainer.train()")
}

// lightning writes the loop of Lightning's Trainer.
func (p *program) lightning() {
	w := p.w
	p.use("", "lightning")
	p.rows()
	outputs, loss := p.forward()
	p.add("class Module(lightning.LightningModule):", "    def __init__(self):", "        super().__init__()", "        self.model = model", "",
		"    def training_step(self, batch, index):", "        return "+fmt.Sprintf(loss, "self."+outputs), "",
		"    def configure_optimizers(self):", "        trained = [p for p in self.parameters() if p.requires_grad]",
		p.optimizerCall("        return ", w.Optimizer.Code(), "trained"), "", "")
	arguments := []string{`accelerator="gpu"`, "devices=1", "max_steps=3"}
	if cast := map[workload.Precision]string{workload.AMPBF16: "bf16-mixed", workload.AMPFP16: "16-mixed"}[w.Precision]; cast != "" {
		arguments = append(arguments, "precision="+quote(cast))
	}
	if w.Accumulate > 1 {
		arguments = append(arguments, fmt.Sprintf("accumulate_grad_batches=%d", w.Accumulate))
	}
	if w.ClipGradNorm {
		arguments = append(arguments, "gradient_clip_val=1.0")
	}
	arguments = append(arguments, "logger=False", "enable_checkpointing=False")
	p.addIf(w.Mode == workload.Training, "model.train()")
	p.add(call("trainer = lightning.Trainer", arguments...),
		fmt.Sprintf("loader = torch.utils.data.DataLoader(Rows(), batch_size=%d)", w.Batch), "trainer.fit(Module(), loader)")
}

// accelerate writes the loop of Accelerate's documentation.
func (p *program) accelerate() {
	w := p.w
	p.use("accelerate", "Accelerator")
	p.rows()
	mixed := map[workload.Precision]string{workload.AMPBF16: `mixed_precision="bf16"`, workload.AMPFP16: `mixed_precision="fp16"`}[w.Precision]
	var arguments []string
	if mixed != "" {
		arguments = append(arguments, mixed)
	}
	if w.Accumulate > 1 {
		arguments = append(arguments, fmt.Sprintf("gradient_accumulation_steps=%d", w.Accumulate))
	}
	p.add(call("accelerator = Accelerator", arguments...))
	p.optimizer()
	p.add(fmt.Sprintf("loader = torch.utils.data.DataLoader(Rows(), batch_size=%d)", w.Batch),
		"model, optimizer, loader = accelerator.prepare(model, optimizer, loader)")
	p.setMode()
	p.add("for i, batch in enumerate(loader):", fmt.Sprintf("    if i %% %d == 0:", w.Accumulate), "        optimizer.zero_grad()")
	outputs, loss := p.forward()
	p.add("    outputs = "+outputs, "    loss = "+fmt.Sprintf(loss, "outputs"), "    accelerator.backward(loss)",
		fmt.Sprintf("    if (i + 1) %% %d == 0:", w.Accumulate))
	p.addIf(w.ClipGradNorm, "        accelerator.clip_grad_norm_(model.parameters(), 1.0)")
	p.add("        optimizer.step()")
}
