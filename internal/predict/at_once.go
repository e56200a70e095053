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
func AtOnce(w *workload.Workload) int { return atOnce(w, 1) }

// RecordedAtOnce is AtOnce of predictions that are recorded. Every pass is written
// down, though one was simulated for all.
func RecordedAtOnce(w *workload.Workload) int { return atOnce(w, int64(max(w.Accumulate, 1))) }

// atOnce is how many predictions may run at once if each holds so many passes of a
// step.
func atOnce(w *workload.Workload, passes int64) int {
	layers := max(w.Config.Layers(), 1) * passes
	if w.Varied() { // none of its steps repeats another
		layers *= drawnSteps / steps
	}
	return int(min(max(layersAtOnce/layers, 1), int64(runtime.GOMAXPROCS(0))))
}
