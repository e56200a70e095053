package engine

import (
	"fmt"
	"math"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/bytesize"
)

// TooLongError says that a batch was not tried because its steps would outlast
// what a probe may take.
type TooLongError struct {
	Batch   int64
	Seconds float64       // that its steps would take
	Timeout time.Duration // of a probe
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("batch %d was not tried: %d steps would take about %.0f s, and the timeout of a probe is %v",
		e.Batch, confirmSteps, e.Seconds, e.Timeout)
}

// patience are the seconds that the steps of a probe may be expected to take:
// half of its time, since the rest of it is not known.
func (b *bench) patience() float64 { return b.Session.Timeout().Seconds() / 2 }

// secondsPerSample is how long a step takes by the largest batch that trained,
// for each of its samples; 0 if none did.
func (b *bench) secondsPerSample() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var largest analysis.Probe
	for _, p := range b.Probes {
		if p.Success && p.Batch > largest.Batch {
			largest = p
		}
	}
	if largest.Batch == 0 {
		return 0
	}
	return largest.Steps[len(largest.Steps)-1].Seconds / float64(largest.Batch)
}

// expectedSeconds is how long the steps would take that confirm a batch, 0 if
// nothing is known.
func (b *bench) expectedSeconds(batch int64) float64 {
	return confirmSteps * b.secondsPerSample() * float64(batch)
}

// maxInTime is the largest batch that can be confirmed in time.
func (b *bench) maxInTime() int64 {
	seconds := b.expectedSeconds(1)
	if seconds == 0 {
		return math.MaxInt64
	}
	return int64(b.patience() / seconds)
}

// explainBounds says what kept the search from larger batches, in addition to a limit
// that the user set.
func (b *bench) explainBounds() {
	if b.tooLong != nil {
		b.LimitNotes = append(b.LimitNotes, b.tooLong.Error())
	}
	if d := b.Device; d.Type == "cpu" && d.Free > 0 && b.limit != int64(b.Workload.Limit()-b.Reserve) {
		b.LimitNotes = append(b.LimitNotes, fmt.Sprintf("of the machine's memory %v were free, and live tensors may take %v of it: a process takes more than those",
			bytesize.Bytes(d.Free), bytesize.Bytes(b.limit)))
	}
}
