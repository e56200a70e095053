package recipe

import (
	"cmp"
	"fmt"
	"strings"

	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// tensor is one of a batch: the key that it has there, the call that makes it, and
// what is done to it then, where %s stands for it. One without a call is a name or a
// value of Python.
type tensor struct {
	key, function string
	arguments     []string
	then          []string
}

// batch is what a model is called with, in the order in which it is made.
type batch struct {
	*program
	rows    bool // of a data set: without a first dimension, on the host
	tensors []tensor
}

// shape is a tuple, of which the first size is the batch's.
func (b *batch) shape(sizes ...int64) string {
	if !b.rows {
		sizes = append([]int64{b.w.Batch}, sizes...)
	}
	if len(sizes) == 1 {
		return fmt.Sprintf("(%d,)", sizes[0])
	}
	text := make([]string, len(sizes))
	for i, size := range sizes {
		text[i] = fmt.Sprint(size)
	}
	return "(" + strings.Join(text, ", ") + ")"
}

// add adds a tensor that a function makes, on the device.
func (b *batch) add(key, function string, arguments ...string) *tensor {
	if !b.rows {
		arguments = append(arguments, `device="cuda"`)
	}
	b.tensors = append(b.tensors, tensor{key: key, function: function, arguments: arguments})
	return &b.tensors[len(b.tensors)-1]
}

// random adds whole numbers below a limit.
func (b *batch) random(key, limit string, sizes ...int64) *tensor {
	return b.add(key, "torch.randint", limit, b.shape(sizes...))
}

// value adds what needs no tensor of its own.
func (b *batch) value(key, text string) {
	b.tensors = append(b.tensors, tensor{key: key, function: text})
}

// floats adds numbers in the model's type. Images are in its layout: a copy in another
// one would take memory of its own.
func (b *batch) floats(key string, sizes ...int64) {
	x := b.add(key, "torch.rand", b.shape(sizes...))
	if of := b.w.Run().DType; of != torch.Float32 {
		x.arguments = append(x.arguments, "dtype="+dtypes[of])
	}
	if b.w.ChannelsLast && !b.rows {
		x.function = "torch.empty"
		x.arguments = append(x.arguments, "memory_format=torch.channels_last")
		x.then = []string{"%s.uniform_()"}
	}
}

// texts adds token ids and their mask: of ones, or with a quarter of each padded.
func (b *batch) texts(config string) {
	length, vocabulary := b.w.Sequence, config+".vocab_size"
	ids := b.random("input_ids", vocabulary, length)
	if b.head().ReadsEnds && b.w.Loss == workload.Labels { // it looks for the end of each
		end := config + ".eos_token_id"
		ids.arguments = ids.arguments[:2]
		ids.then = []string{"%[1]s[%[1]s == " + end + "] = " + vocabulary + " - 1", "%s[..., -1] = " + end}
		if !b.rows {
			ids.then = append(ids.then, "%[1]s = %[1]s.cuda()")
		}
	}
	if b.w.AttentionMask == workload.NoMask {
		return
	}
	mask := b.add("attention_mask", "torch.ones", b.shape(length), "dtype=torch.long")
	if b.w.AttentionMask == workload.Padded {
		mask.then = []string{fmt.Sprintf("%%s[..., -%d:] = 0", length/4)}
	}
}

// inputs adds what the model reads.
func (b *batch) inputs() {
	w, config := b.w, b.inner()+".config"
	bins, frames := w.Features()
	switch {
	case bins > 0:
		b.floats("input_features", bins, frames)
	case b.head().Labels == models.Pairs:
		b.texts(config + ".text_config")
		b.floats("pixel_values", 3, w.Image, w.Image)
		b.value("return_loss", "True")
	case w.TakesImages():
		b.floats("pixel_values", 3, w.Image, w.Image)
	default:
		b.texts(config)
	}
}

// labels adds what the model's own loss takes, or what a decoder reads where there are
// none.
func (b *batch) labels() {
	w, config := b.w, b.inner()+".config"
	bins, _ := w.Features()
	switch labels := b.head().Labels; {
	case bins > 0 && w.Loss == workload.MeanLogits:
		b.random("decoder_input_ids", config+".vocab_size", w.Sequence)
	case w.Loss == workload.MeanLogits && b.head().Decodes:
		b.value("decoder_input_ids", "ids")
	case w.Loss == workload.MeanLogits:
	case bins > 0, labels == models.TargetIDs:
		b.random("labels", config+".vocab_size", w.Sequence)
	case labels == models.SameIDs:
		b.value("labels", "ids")
	case labels == models.TokenTags:
		b.random("labels", config+".num_labels", w.Sequence)
	case labels == models.Spans:
		b.random("start_positions", fmt.Sprint(w.Sequence))
		b.random("end_positions", fmt.Sprint(w.Sequence))
	case labels == models.Classes && w.Config.ModelType == torchvisionResNet:
		b.random("labels", b.inner()+".fc.out_features")
	case labels == models.Classes:
		b.random("labels", config+".num_labels")
	}
}

// inner is the model that has the configuration.
func (p *program) inner() string {
	if p.w.Parallel != nil && !p.sharded() { // in DistributedDataParallel
		return "model.module"
	}
	return "model"
}

// draw writes the batch of a loop: one, which stands for all.
func (p *program) draw() {
	p.add("", "# One random batch. Put your data here.")
	p.drawBatch(false, "", "batch = {")
}

// variables are what tensors are called, where it is not their key.
var variables = map[string]string{"input_ids": "ids", "pixel_values": "pixels"}

// drawBatch writes tensors, and the mapping of them.
func (p *program) drawBatch(rows bool, indent, opening string) {
	b := &batch{program: p, rows: rows}
	b.inputs()
	b.labels()
	entries := make([]string, len(b.tensors))
	for i, x := range b.tensors {
		name := cmp.Or(variables[x.key], x.key)
		if x.arguments == nil {
			name = x.function
		} else {
			p.add(call(indent+name+" = "+x.function, x.arguments...))
		}
		for _, line := range x.then {
			p.add(indent + fmt.Sprintf(line, name))
		}
		entries[i] = fmt.Sprintf("%q: %s", x.key, name)
	}
	p.add(wrapped(indent+opening, "}", entries))
}
