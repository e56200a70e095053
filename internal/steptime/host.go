package steptime

// Seconds of the host, of a PyTorch 2.11 on a current server's processor, as steps
// of small batches show it (testdata/README.md): for a launch, for a node of
// autograd that is made or run, for what an optimizer and its loop do besides, and for a launch
// of an optimizer's multi-tensor kernel, which takes some hundred tensors.
const (
	hostOfLaunch  = 21.6e-6
	hostOfNode    = 6.4e-6
	HostOfUpdate  = 7e-3
	hostOfForeach = 100e-6
)

// What a launch takes where PyTorch's calls are counted (Work.Calls) and nodes are not.
const (
	hostOfCounted  = 26e-6
	hostOfBackward = 30e-6
	hostOfCall     = 4e-6
)

// hostOf is what a launch takes of the host.
func hostOf(l *Launch) float64 {
	if l.Kind == Foreach {
		return hostOfForeach
	}
	return hostOfLaunch
}
