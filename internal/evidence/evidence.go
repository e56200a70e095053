// Package evidence names what an answer rests on. Every number that is shown
// says which kind it is.
package evidence

// Engine is how a question is answered, and so what its answer rests on.
type Engine string

// The engines. Auto is only ever asked for: an answer says which it was.
const (
	Auto      Engine = "auto"      // Measured where that is possible, else Predicted, else Emulated
	Predicted Engine = "predicted" // a symbolic step on a simulated allocator
	Emulated  Engine = "emulated"  // real steps of a real PyTorch, on a card that is not there
	Measured  Engine = "measured"  // real steps on a device of this machine
)

// Choices are the engines that can be asked for.
var Choices = []Engine{Auto, Predicted, Emulated, Measured}

// RunsSteps reports whether PyTorch itself runs: then its version is a fact, and
// not what was modelled.
func (e Engine) RunsSteps() bool { return e == Emulated || e == Measured }
