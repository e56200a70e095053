package steptime

// Seconds of the host, of a PyTorch 2.11 on a current server's processor, as steps
// of small batches show it (testdata/README.md): for a launch by Python, with the node
// of autograd that it makes, for a node that autograd's thread runs, with what that
// launches, and for the rest of an optimizer and its loop. For a launch of an optimizer,
// by itself or of a multi-tensor kernel, which takes some hundred tensors, it is what
// optimizers take that were timed alone (h200.jsonl of testdata/kernels).
const (
	hostOfLaunch  = 30e-6
	hostOfNode    = 18e-6
	hostOfUpdate  = 8.5e-3
	hostOfTensor  = 9e-6
	hostOfForeach = 100e-6
)

// What a launch takes where PyTorch's calls are counted (Work.Calls) and nodes are not.
const (
	hostOfCounted  = 26e-6
	hostOfBackward = 30e-6
	hostOfCall     = 4e-6
)

// hostOf is what launches take of the host, with the nodes that autograd's thread runs.
func (l Launches) hostOf(nodes float64) float64 {
	seconds := nodes * hostOfNode
	for _, c := range l {
		switch {
		case c.Kind == Foreach:
			seconds += c.Count * hostOfForeach
		case !c.Backward:
			seconds += c.Count * hostOfLaunch
		}
	}
	return seconds
}

// hostOfOptimizer is what those of an optimizer take, 0 if there are none.
func (l Launches) hostOfOptimizer() float64 {
	seconds := 0.
	for _, c := range l {
		if c.Kind == Foreach {
			seconds += c.Count * hostOfForeach
		} else {
			seconds += c.Count * hostOfTensor
		}
	}
	if seconds > 0 {
		seconds += hostOfUpdate
	}
	return seconds
}
