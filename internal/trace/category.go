package trace

// Category is what memory is for.
type Category uint8

// The categories. A prediction knows them; Classify infers them for a
// recording.
const (
	Unknown        Category = iota
	Parameter               // weights and buffers of the model
	Input                   // the batch
	Gradient                // gradients of parameters
	OptimizerState          // what the optimizer keeps between steps
	Activation              // made in forward, needed in backward
	Temporary               // freed in the phase that made it
	Workspace               // scratch that libraries keep
)

var categoryNames = [...]string{
	Unknown: "unknown", Parameter: "parameter", Input: "input", Gradient: "gradient",
	OptimizerState: "optimizer state", Activation: "activation",
	Temporary: "temporary", Workspace: "workspace",
}

// Categories lists all categories in the order in which they are stacked:
// what lives longest comes first.
var Categories = []Category{Parameter, OptimizerState, Workspace, Input, Unknown, Gradient, Activation, Temporary}

// String returns the name of the category.
func (c Category) String() string { return categoryNames[c] }
