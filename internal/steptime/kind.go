package steptime

import (
	"fmt"
	"slices"
)

// Kind is what a launch does; its comment says what the sizes of a launch are.
type Kind uint8

// The kinds of launches. Those from Kernel to Fill move memory, and their only
// size is the bytes that they read and write.
const (
	Product     Kind = iota // of matrices: m, n, k, how many of them, Layout, bytes to which every row is aligned
	Convolution             // direction, batch, channels, filters, taps, input pixels, output pixels, groups, whether channels are last
	Attention               // operations, bytes, direction, Implementation, queries, keys, size of a head, batch times heads
	BatchNorm               // direction, whether it is cuDNN's, elements, channels
	Recurrent               // gates, input, hidden, layers, directions, batch, steps, whether one step follows another
	Kernel                  // everything else that computes elements from elements
	Widen                   // elements of two types, of which the result has the larger
	Row                     // elements and a row or column that they share
	Strided                 // elements in another order
	Dropout
	LayerNorm
	LayerNormBackward
	Softmax
	SoftmaxBackward
	LogSoftmax
	LogSoftmaxBackward
	NLLLoss
	SumRows    // a sum over rows: gradients of biases
	SumColumns // a sum within rows
	Embedding
	EmbeddingBackward
	MaxPool
	MaxPoolBackward
	Upsample
	GroupNorm
	Foreach // of an optimizer, over many tensors
	Fill
	Copy // between the host and the card: bytes
	Wait // of the host, for the card
)

var kinds = [...]string{
	"product", "convolution", "attention", "batch_norm", "recurrent", "kernel", "widen", "row", "strided", "dropout",
	"layer_norm", "layer_norm_backward", "softmax", "softmax_backward", "log_softmax", "log_softmax_backward", "nll_loss",
	"sum_rows", "sum_columns", "embedding", "embedding_backward", "max_pool", "max_pool_backward", "upsample", "group_norm",
	"foreach", "fill", "copy", "wait",
}

func (k Kind) String() string { return kinds[k] }

// MarshalText is the name of the kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(kinds[k]), nil }

// UnmarshalText reads the name of a kind.
func (k *Kind) UnmarshalText(text []byte) error {
	i := slices.Index(kinds[:], string(text))
	if i < 0 {
		return fmt.Errorf("no kind of launch is called %q", text)
	}
	*k = Kind(i)
	return nil
}

// Layout is how the operands of a product lie in memory.
type Layout float64

// The layouts, by which training asks for each of them: x Wᵀ, dy W and dyᵀ x.
const (
	ForwardLayout Layout = iota // rows of both operands are what is summed over
	InputLayout                 // rows of the left one are
	WeightLayout                // rows of neither are
)

// Directions of a convolution, attention or normalization.
const (
	Forward     = 0
	Backward    = 1 // of a convolution, the gradient of its input
	FilterGrads = 2
)

// Implementations of attention.
const (
	CuDNN = iota
	Flash
	Efficient
)
