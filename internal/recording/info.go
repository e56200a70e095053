package recording

import (
	"strings"

	"memorymark/internal/allocator"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

// Info is the content of a snapshot file.
type Info struct {
	File     string       `json:"file"`
	Protocol int          `json:"pickle_protocol"`
	Encoding string       `json:"encoding,omitempty"` // the compression
	Unknown  []string     `json:"unknown_keys,omitempty"`
	Devices  []DeviceInfo `json:"devices"`
}

// DeviceInfo is the content of a snapshot for one device.
type DeviceInfo struct {
	Device   int            `json:"device"`
	Events   int            `json:"events"`
	Actions  map[string]int `json:"events_by_action"`
	Lost     int            `json:"contradicting_events,omitempty"`
	Micros   int64          `json:"duration_us,omitempty"`
	Steps    int            `json:"optimizer_steps,omitempty"`
	Peak     PeakInfo       `json:"peak"`
	AtPeak   []TopGroup     `json:"categories_at_peak"`
	Failures []FailureInfo  `json:"out_of_memory,omitempty"`
	Segments *SegmentsInfo  `json:"segments,omitempty"`
	Settings SettingsInfo   `json:"settings"`
}

// PeakInfo holds the peak of each kind of bytes. The peaks need not be at the
// same event.
type PeakInfo struct {
	Event     int    `json:"event"` // of the requested peak, -1 before the first event
	Requested int64  `json:"requested_bytes"`
	Allocated *int64 `json:"allocated_bytes,omitempty"` // with the allocator's rounding
	Reserved  *int64 `json:"reserved_bytes,omitempty"`  // taken from the driver
}

// FailureInfo is an allocation that failed.
type FailureInfo struct {
	Event      int          `json:"event"`
	Asked      int64        `json:"asked_bytes"` // as the allocator rounds it
	DeviceFree *int64       `json:"device_free_bytes,omitempty"`
	LiveBytes  int64        `json:"live_bytes"`
	LiveCount  int          `json:"live_count"`
	By         Place        `json:"made_by"`
	Top        []TopGroup   `json:"largest_live"`
	Why        *Explanation `json:"explanation,omitempty"`
}

// SegmentsInfo sums up what the allocator held at a moment.
type SegmentsInfo struct {
	Count       int   `json:"count"`
	Bytes       int64 `json:"total_bytes"`
	UsedBytes   int64 `json:"used_bytes"`
	FreeBytes   int64 `json:"free_bytes"`
	LargestFree int64 `json:"largest_free_block_bytes"`
}

// SettingsInfo are the allocator settings that are not PyTorch's defaults.
type SettingsInfo struct {
	Raw                string  `json:"pytorch_cuda_alloc_conf,omitempty"`
	ExpandableSegments bool    `json:"expandable_segments,omitempty"`
	MaxSplitSize       int64   `json:"max_split_size_bytes,omitempty"`
	GCThreshold        float64 `json:"garbage_collection_threshold,omitempty"`
}

// newDeviceInfo describes a trace as far as that needs no simulation. The
// allocations must have been classified.
func newDeviceInfo(t *trace.Trace, lifetimes []trace.Lifetime) (*DeviceInfo, error) {
	peak := t.Peak()
	top, err := newTop(t, lifetimes, peak.Event, ByCategory, 0)
	if err != nil {
		return nil, err
	}
	d := &DeviceInfo{
		Device: t.Device, Events: len(t.Events), Actions: make(map[string]int), Lost: t.Lost,
		Micros: recordedMicros(t), Steps: optimizerSteps(t),
		Peak:     PeakInfo{Event: peak.Event, Requested: peak.Bytes},
		AtPeak:   top.Groups,
		Segments: newSegmentsInfo(t.Final),
		Settings: SettingsInfo{
			Raw: t.Settings.Raw, ExpandableSegments: t.Settings.ExpandableSegments,
			MaxSplitSize: t.Settings.MaxSplitSize, GCThreshold: t.Settings.GCThreshold,
		},
	}
	if reserved, ok := timeline.PeakReserved(t); ok {
		d.Peak.Reserved = &reserved
	}
	failures := d.countActions(t)
	for _, event := range failures[max(len(failures)-maxFailures, 0):] {
		f, err := newFailureInfo(t, lifetimes, event)
		if err != nil {
			return nil, err
		}
		d.Failures = append(d.Failures, *f)
	}
	return d, nil
}

// countActions counts the events by action and returns the out-of-memory
// events.
func (d *DeviceInfo) countActions(t *trace.Trace) (failures []int) {
	var counts [256]int // by trace.Action
	for i := range t.Events {
		a := t.Events[i].Action
		counts[a]++
		if a == trace.OutOfMemory {
			failures = append(failures, i)
		}
	}
	for a, n := range counts {
		if n > 0 {
			d.Actions[trace.Action(a).String()] += n
		}
	}
	return failures
}

// addSimulated adds what needs a simulation of the trace.
func (d *DeviceInfo) addSimulated(t *trace.Trace, replay *allocator.Replay) {
	if d.Peak.Event >= 0 { // before the first event it is not known
		peak := replay.Recorded().Stats.AllocatedBytes[allocator.All].Peak
		d.Peak.Allocated = &peak
	}
	for i := range d.Failures {
		d.Failures[i].Why = explain(t, replay, d.Failures[i].Event)
	}
}

// maxFailures is how many failures are described, the last ones. Programs that
// catch the error and try again can have thousands.
const maxFailures = 5

func newFailureInfo(t *trace.Trace, lifetimes []trace.Lifetime, event int) (*FailureInfo, error) {
	top, err := newTop(t, lifetimes, event, ByLine, 5)
	if err != nil {
		return nil, err
	}
	e := &t.Events[event]
	f := &FailureInfo{
		Event: event, Asked: e.Size, LiveBytes: top.LiveBytes, LiveCount: top.LiveCount,
		By: newPlace(t.Stacks.Frames(e.Stack), trace.Unknown, false), Top: top.Groups,
	}
	if e.Note != 0 {
		f.DeviceFree = &t.Notes[e.Note].DeviceFree
	}
	return f, nil
}

func recordedMicros(t *trace.Trace) int64 {
	if len(t.Events) == 0 || t.Events[0].Time == 0 {
		return 0
	}
	return max(t.Events[len(t.Events)-1].Time-t.Events[0].Time, 0)
}

func optimizerSteps(t *trace.Trace) int {
	n := 0
	for _, m := range t.Marks {
		if !m.End && strings.HasPrefix(m.Name, "Optimizer.step#") {
			n++
		}
	}
	return n
}
