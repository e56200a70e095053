package study

import "slices"

// This file names what a block of the plain language model makes in forward,
// in the order in which the code of models/lm.go makes it. Which of it is saved
// for backward is not written here: the prediction tells, and it must agree
// with the sizes.

// blockValue is a tensor of a block.
type blockValue struct {
	what   string
	shape  []string // in the symbols of Activation
	reason string   // why autograd saves it, if it does
	// copied reports whether the tensor is made at all: some are copies that
	// only other layouts need. Nil is always.
	copied func(symbols) bool
}

// A batched product wants its operands contiguous. Heads that were split off
// the width are not, unless one of the two dimensions they were swapped with
// is 1.
func headsAreSplit(s symbols) bool { return s["B"] > 1 && s["S"] > 1 }

// Merging the heads again copies, unless there is only one position.
func headsAreMerged(s symbols) bool { return s["S"] > 1 }

var (
	stream  = []string{"B", "S", "D"}      // the residual stream, and what has its shape
	perRow  = []string{"B", "S", "1"}      // a number for each position
	heads   = []string{"B", "H", "S", "d"} // the width, split into heads
	halves  = []string{"B", "H", "S", "d/2"}
	scores  = []string{"B", "H", "S", "S"} // a number for each pair of positions
	inner   = []string{"B", "S", "F"}      // the feed-forward's width
	scalars = []string{"1"}
)

var blockValues = slices.Concat(
	normValues("norm 1", "input of q, k and v, for their weights' gradients"),
	rotated("q"),
	rotated("k"),
	[]blockValue{
		{what: "v = W_v · norm 1", shape: stream, reason: "the product with the weights needs it"},
		{what: "q, contiguous", shape: heads, reason: "the product q · kᵀ needs it for k's gradient", copied: headsAreSplit},
		{what: "k, contiguous", shape: heads, reason: "the product q · kᵀ needs it for q's gradient", copied: headsAreSplit},
		{what: "scores = q · kᵀ", shape: scores},
		{what: "scores / √d", shape: scores},
		{what: "−∞", shape: scalars},
		{what: "scores, masked", shape: scores},
		{what: "weights = softmax(scores)", shape: scores, reason: "softmax and the product with v need their result"},
		{what: "v, contiguous", shape: heads, reason: "the product with the weights needs it", copied: headsAreSplit},
		{what: "weights · v", shape: heads, reason: "input of the output projection"},
		{what: "heads, merged", shape: stream, reason: "input of the output projection, for its weight's gradient", copied: headsAreMerged},
		{what: "attention = W_o · heads", shape: stream},
		{what: "x + attention", shape: stream, reason: "the residual stream: norm 2 needs its input"},
	},
	normValues("norm 2", "input of gate and up, for their weights' gradients"),
	[]blockValue{
		{what: "gate = W_gate · norm 2", shape: inner, reason: "SiLU needs its input"},
		{what: "silu(gate)", shape: inner, reason: "its product with up needs it"},
		{what: "up = W_up · norm 2", shape: inner, reason: "its product with silu(gate) needs it"},
		{what: "silu(gate) · up", shape: inner, reason: "input of down, for its weight's gradient"},
		{what: "feed-forward = W_down · …", shape: stream},
		{what: "x + feed-forward", shape: stream, reason: "the residual stream: the next norm needs its input"},
	},
)

// normValues are what an RMSNorm makes.
func normValues(name, reason string) []blockValue {
	return []blockValue{
		{what: name + ": x²", shape: stream},
		{what: name + ": mean of x²", shape: perRow},
		{what: name + ": mean + ε", shape: perRow},
		{what: name + ": r = 1/√(mean + ε)", shape: perRow, reason: "the product x · r needs it"},
		{what: name + ": x · r", shape: stream, reason: "for the gradient of the norm's weight"},
		{what: name + ": weight · x · r", shape: stream, reason: reason},
	}
}

// rotated is a projection and its rotary positions.
func rotated(name string) []blockValue {
	return []blockValue{
		{what: name + " = W_" + name + " · norm 1", shape: stream},
		{what: name + " · cos", shape: heads},
		{what: "−" + name + "₂, its second half", shape: halves},
		{what: "(−" + name + "₂, " + name + "₁)", shape: heads},
		{what: "(−" + name + "₂, " + name + "₁) · sin", shape: heads},
		{what: name + ", rotated", shape: heads, reason: "the product q · kᵀ needs it"},
	}
}
