package steptime

// model has the constants of an estimate.
type model struct {
	// Seconds of the host: for a launch by Python, for one by autograd, and for
	// each call of PyTorch by Python; many calls launch nothing.
	launch, backward, call float64
	// Seconds of the card for a launch, besides its work, and for a step of a
	// recurrent layer.
	kernel, recurrentStep float64

	// Shares of a card's peak rates that matrix products reach, by what
	// computes, and of its memory's bandwidth.
	fp32, tf32, half, bandwidth float64

	// Rates of others, as shares of those of products of the same type.
	attentionFP32, attentionTensor               float64
	forwardFP32, gradientFP32, convolutionTensor float64
	groupedFP32, groupedHalf                     float64 // of the fp32 rate: groups do not fill tensor cores
	recurrent                                    float64
	convolutionBandwidth                         float64 // of other kernels': tensors are copied to another layout and back
	shallow                                      float64 // elements of a reduction that starting it costs
}

// fitted are the constants that suit the timed steps of testdata best. The test
// that fits them again without one model at a time says how far they carry.
var fitted = model{
	launch: 26e-6, backward: 30e-6, call: 4e-6, kernel: 2.3e-6, recurrentStep: 31e-6,
	fp32: 0.77, tf32: 0.62, half: 0.72, bandwidth: 0.57,
	attentionFP32: 0.39, attentionTensor: 0.27, forwardFP32: 0.61, gradientFP32: 0.39, convolutionTensor: 0.42,
	groupedFP32: 0.011, groupedHalf: 0.2, recurrent: 0.5, convolutionBandwidth: 0.35, shallow: 17,
}

// What was not fitted.
const (
	tile               = 128  // rows and columns of a result that a multiprocessor computes at once
	splitDepth         = 512  // elements of a reduction that are worth a multiprocessor of their own
	hostBytesPerSecond = 25e9 // of copies over PCI Express
)
