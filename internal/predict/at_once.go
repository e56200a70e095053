package predict

import (
	"runtime"

	"memorymark/internal/workload"
)

// layersAtOnce is how many layers may be simulated at the same time: a process of
// a thousand takes half a gigabyte.
const layersAtOnce = 500

// AtOnce is how many predictions of a workload may run at the same time: as many as
// there are cores, and fewer of deep models, so that one question stays within a
// gigabyte on every machine.
func AtOnce(w *workload.Workload) int {
	layers := max(w.Config.Layers(), 1)
	if w.Varied() { // none of its steps repeats another
		layers *= drawnSteps / steps
	}
	return int(min(max(layersAtOnce/layers, 1), int64(runtime.GOMAXPROCS(0))))
}
