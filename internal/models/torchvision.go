package models

import (
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var torchvisionResNetFamily = Family{
	Type: "torchvision_resnet", Images: true, ChannelsLast: true, read: reads(readTorchvisionResNet), Module: "memorymark_prober.vision",
	Heads: []Head{takesNoKeywords(head("TorchvisionClassifier", Classes, newTorchvisionResNet))},
}

// torchvisionResNetConfig is what torchvision's ResNet is constructed with.
type torchvisionResNetConfig struct {
	Block   string  `json:"block"` // BasicBlock or Bottleneck
	Layers  []int64 `json:"layers"`
	Classes int64   `json:"num_classes"`
	Width   int64   `json:"width_per_group"`
}

// readTorchvisionResNet reads the arguments of a ResNet; those of resnet50 are the
// defaults.
func readTorchvisionResNet(c *hfconfig.Config) (*torchvisionResNetConfig, error) {
	r := &torchvisionResNetConfig{Block: bottleneck, Layers: []int64{3, 4, 6, 3}, Classes: 1000, Width: 64}
	if err := c.Decode(r, "zero_init_residual"); err != nil {
		return nil, err
	}
	return r, r.validate()
}

const (
	basicBlock = "BasicBlock"
	bottleneck = "Bottleneck"
)

func (r *torchvisionResNetConfig) validate() error {
	switch {
	case r.Block != basicBlock && r.Block != bottleneck:
		return fmt.Errorf("config: block is %q; it must be %s or %s", r.Block, basicBlock, bottleneck)
	case len(r.Layers) != 4 || slices.Min(r.Layers) < 1:
		return fmt.Errorf("config: layers is %v; it must be four numbers of at least 1", r.Layers)
	case r.Block == basicBlock && r.Width != 64:
		return fmt.Errorf("config: width_per_group is %d; it must be 64 for a BasicBlock", r.Width)
	}
	if err := errors.Join(invalid.Positive("num_classes", r.Classes), invalid.Positive("width_per_group", r.Width)); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	return nil
}

// torchvisionResNet is ResNet of torchvision/models/resnet.py (0.26) with the loss
// around it that internal/measure/prober/memorymark_prober/vision.py computes.
// What decides its memory in addition to transformers' ResNet: its ReLUs are in place.
type torchvisionResNet struct {
	train bool
	stem  *convLayer
	stage [4][]*resnetLayer
	fc    *torch.Linear
}

// newTorchvisionResNet makes the model, parameters in the order of its
// constructors.
func newTorchvisionResNet(t *torch.Torch, c *torchvisionResNetConfig, r Run) (*Model, error) {
	if r.Checkpointing {
		return nil, errors.New("checkpointing: torchvision's ResNet does not support it")
	}
	mk := &torchvisionMaker{t: t, cfg: c, dtype: r.DType}
	m := &torchvisionResNet{train: r.Train, stem: mk.conv(3, 64, 7, 2)}
	in := int64(64)
	for i, count := range c.Layers {
		planes, stride := int64(64)<<i, int64(2)
		if i == 0 {
			stride = 1
		}
		for j := range count {
			if j > 0 {
				stride = 1
			}
			m.stage[i] = append(m.stage[i], mk.block(in, planes, stride))
			in = planes * mk.expansion()
		}
	}
	m.fc = t.NewLinear(in, c.Classes, true, r.DType).Named("model.fc")
	return &Model{Forward: m.forward}, nil
}

// torchvisionMaker makes modules in the order of their constructors.
type torchvisionMaker struct {
	t     *torch.Torch
	cfg   *torchvisionResNetConfig
	dtype torch.DType
}

func (mk *torchvisionMaker) expansion() int64 {
	if mk.cfg.Block == bottleneck {
		return 4
	}
	return 1
}

func (mk *torchvisionMaker) conv(in, out, kernel, stride int64) *convLayer {
	return &convLayer{
		convolution:   mk.t.NewConv2d(in, out, kernel, stride, kernel/2, false, mk.dtype),
		normalization: mk.t.NewBatchNorm2d(out, mk.dtype),
	}
}

// block is BasicBlock or Bottleneck. What adjusts its input is made before it, and
// listed last.
func (mk *torchvisionMaker) block(in, planes, stride int64) *resnetLayer {
	out := planes * mk.expansion()
	b := &resnetLayer{}
	if stride != 1 || in != out {
		b.shortcut = mk.conv(in, out, 1, stride)
	}
	if mk.cfg.Block == basicBlock {
		b.layers = []*convLayer{mk.conv(in, planes, 3, stride), mk.conv(planes, planes, 3, 1)}
	} else {
		width := planes * mk.cfg.Width / 64
		b.layers = []*convLayer{mk.conv(in, width, 1, 1), mk.conv(width, width, 3, stride), mk.conv(width, out, 1, 1)}
	}
	if b.shortcut != nil {
		mk.listLast(b)
	}
	return b
}

func (mk *torchvisionMaker) listLast(b *resnetLayer) {
	conv, norm := b.shortcut.convolution, b.shortcut.normalization
	for _, l := range b.layers {
		for _, p := range []*torch.Tensor{l.convolution.Weight, l.normalization.Weight, l.normalization.Bias} {
			mk.t.ListBefore(p, conv.Weight)
		}
	}
	mk.t.OwnAfterParts(conv.Weight, norm.Weight, norm.Bias, norm.Mean, norm.Var, norm.Counts)
}

// forward is TorchvisionClassifier.forward.
func (m *torchvisionResNet) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	logits := f.Let(m.scores(t, batch.Pixels))
	var loss torch.Value
	if batch.Labels != nil {
		loss = f.Keep(f.Let(t.In("loss", func() torch.Value { return t.CrossEntropy(logits, torch.Borrow(batch.Labels)) })))
	}
	out := Output{Loss: loss, Logits: f.Keep(logits), Tuple: true}
	f.End()
	return out
}

// scores is ResNet._forward_impl.
func (m *torchvisionResNet) scores(t *torch.Torch, pixels *torch.Tensor) torch.Value {
	f := t.Enter().In("model")
	x := f.Let(m.conv(t, m.stem, torch.Borrow(pixels)))
	t.ReLUInPlace(x)
	x.Set(t.MaxPool2d(x, 3, 2, 1))
	for i := range m.stage {
		x.Set(m.layer(t, i, x))
	}
	x.Set(t.GlobalAvgPool2d(x))
	x.Set(t.Flatten(x, 1))
	x.Set(t.In("fc", func() torch.Value { return t.Linear(x, m.fc) }))
	return f.Return(x)
}

// layer is layer1 to layer4, each an nn.Sequential.
func (m *torchvisionResNet) layer(t *torch.Torch, i int, input *torch.Var) torch.Value {
	f := t.Enter(input)
	x := f.Let(input)
	for j := range m.stage[i] {
		x.Set(m.block(t, i, j, x))
	}
	return f.Return(x)
}

// block is BasicBlock.forward or Bottleneck.forward.
func (m *torchvisionResNet) block(t *torch.Torch, i, j int, input *torch.Var) torch.Value {
	f, b := t.Enter(input).In(fmt.Sprintf("layer%d", i+1), j), m.stage[i][j]
	x := f.Let(input)
	identity := f.Let(x)
	out := f.Let(x)
	for i, l := range b.layers {
		out.Set(t.Conv2d(out, l.convolution))
		out.Set(t.BatchNorm(out, l.normalization, m.train))
		if i < len(b.layers)-1 {
			t.ReLUInPlace(out)
		}
	}
	if b.shortcut != nil {
		identity.Set(t.In("downsample", func() torch.Value { return m.conv(t, b.shortcut, x) }))
	}
	t.AddInPlace(out, identity)
	t.ReLUInPlace(out)
	return f.Return(out)
}

// conv is a convolution and its norm.
func (m *torchvisionResNet) conv(t *torch.Torch, l *convLayer, input torch.X) torch.Value {
	f := t.Enter()
	out := f.Let(t.Conv2d(input, l.convolution))
	return f.Return(t.BatchNorm(out, l.normalization, m.train))
}
