package predict

import (
	"memorymark/internal/gpu"
	"memorymark/internal/steptime"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// This file estimates how long a step takes: as long as Python takes to launch
// its kernels, or as long as the card takes to run them, whichever is longer.
// The constants were fitted to 78 timed steps of BERT, GPT-2 and ResNet-50 in
// three precisions on an H200 (testdata/truth/throughput.jsonl); with one of
// the models held out, the median error on it is 9 to 12 %. Products in half
// precision take little of those steps, so their rate was measured alone: 694 to
// 795 of 989 TFLOPS in four products of 8192 × 4096 × 4096 to 8192 × 28672 × 8192,
// 739 in the mean. It carries over to an A100 (communication_test.go).
const (
	launchSeconds = 31e-6 // of the processor, for each kernel of eager PyTorch
	kernelSeconds = 5e-6  // of the card, for each kernel besides its work

	// The shares of a card's peak rate that matrix products and convolutions reach.
	fp32Products, fp32Convolutions = 0.76, 0.447
	tf32Products, tf32Convolutions = 0.55, 0.344
	halfProducts, halfConvolutions = 0.75, 0.2875

	// Bytes moved for each byte written: operands are read, and no card
	// reaches its peak bandwidth.
	traffic = 4.2
)

// StepSeconds estimates how long a step takes once the process has settled, with
// what its GPU waits for others.
func (s *Simulation) StepSeconds() float64 {
	w := s.Process.w
	return stepSeconds(s.Process.StepWork, s.Card, w.Precision) + s.Process.Timing().waiting(s.Card, w.Parallel, int64(w.Accumulate))
}

func stepSeconds(w torch.Work, card *gpu.Card, in workload.Precision) float64 {
	kernels := float64(w.Kernels)
	half := steptime.FP16
	if usesBF16(in) {
		half = steptime.BF16
	}
	device := multiplying(w.Products.FP32, w.Convolutions.FP32, card, steptime.FP32) +
		multiplying(w.Products.TF32, w.Convolutions.TF32, card, steptime.TF32) +
		multiplying(w.Products.Half, w.Convolutions.Half, card, half) +
		w.Bytes*traffic/(card.BandwidthGBPerS*1e9) + kernels*kernelSeconds
	return max(kernels*launchSeconds, device)
}

// multiplying is how long a card takes for the operations of matrix products
// and of convolutions.
func multiplying(products, convolutions float64, card *gpu.Card, t steptime.Type) float64 {
	peak, on := steptime.Peak(card, t)
	switch on {
	case steptime.FP32:
		return (products/fp32Products + convolutions/fp32Convolutions) / peak
	case steptime.TF32:
		return (products/tf32Products + convolutions/tf32Convolutions) / peak
	}
	return (products/halfProducts + convolutions/halfConvolutions) / peak
}

// Speed is how fast a step is as a function of the batch. What a step does is
// a line in the batch, so two of them say all.
type Speed struct {
	card        *gpu.Card
	w           *workload.Workload
	low, high   pace
	small, wide int64
}

// pace is what the steps of a batch ask of the card.
type pace struct {
	work   torch.Work
	timing Timing
}

// Speed looks at batches up to the given one.
func (r *Runner) Speed(largest int64) (*Speed, error) {
	s := &Speed{card: r.card, w: r.w, small: 8, wide: max(largest, 9)}
	for batch, pace := range map[int64]*pace{s.small: &s.low, s.wide: &s.high} {
		p, err := r.process(batch)
		if err != nil {
			return nil, err
		}
		pace.work, pace.timing = p.StepWork, p.Timing()
	}
	return s, nil
}

// SamplesPerSecond estimates the throughput at a batch.
func (s *Speed) SamplesPerSecond(batch int64) float64 {
	share := float64(batch-s.small) / float64(s.wide-s.small)
	computing := stepSeconds(s.low.work.Towards(s.high.work, share), s.card, s.w.Precision)
	waiting := s.low.timing.Towards(s.high.timing, share).waiting(s.card, s.w.Parallel, int64(s.w.Accumulate))
	return float64(batch) / (computing + waiting)
}
