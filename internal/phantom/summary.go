package phantom

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/steptime"
)

// Summary is what a command took on the emulated device.
type Summary struct {
	Engine  evidence.Engine `json:"engine"`
	GPU     string          `json:"gpu"`
	GPUName string          `json:"gpu_name"`
	GPUs    int             `json:"gpus"`
	Limit   bytesize.Bytes  `json:"limit_bytes"` // what each card had to give
	// Fits says whether each process had the memory it needed. It is absent if
	// that is not known: nothing used the GPU, or the program failed.
	Fits     *bool    `json:"fits,omitempty"`
	ExitCode int      `json:"exit_code"`         // of the command
	Failure  *Failure `json:"failure,omitempty"` // of the command, absent if it ended well
	Seconds  float64  `json:"seconds"`
	// Why the values were computed after a run that assumed them, or should have been.
	WhyComputed string `json:"why_computed,omitempty"`
	// Accuracy is how far off estimated times of steps were where they could be checked.
	Accuracy  *steptime.Accuracy `json:"step_seconds_accuracy,omitempty"`
	Processes []Process          `json:"processes"` // that used the device, the largest first
}

// Process is what one process took.
type Process struct {
	PID     int      `json:"pid"`
	Parent  int      `json:"parent"`
	Command []string `json:"command"`
	Rank    string   `json:"rank,omitempty"` // of a job on several GPUs
	Torch   string   `json:"torch"`
	CUDA    string   `json:"cuda"`

	Fits    *bool    `json:"fits,omitempty"`    // as in Summary
	Failure *Failure `json:"failure,omitempty"` // absent if it ended well
	// Sampled peaks are what was seen of a process that could not report at its
	// end: they may have been higher.
	Sampled bool `json:"sampled,omitempty"`

	Steps     int64         `json:"steps"` // of optimizers
	StepPeaks []StepPeak    `json:"step_peaks,omitempty"`
	Devices   []DevicePeaks `json:"devices"`
	OOMs      []OOM         `json:"out_of_memory,omitempty"`
	// Late are DDP's first buckets. On a card they may be held until the second
	// step's backward, and then up to that much more is reserved.
	Late     bytesize.Bytes `json:"late_bytes,omitempty"`
	Launches int64          `json:"launches"`
	// StepSeconds estimates how long the largest step after the first takes on
	// such a card, 0 if there was none.
	StepSeconds float64      `json:"step_seconds,omitempty"`
	Values      Values       `json:"values"` // that the program read
	Assumed     []Assumption `json:"assumed,omitempty"`
	Notes       []string     `json:"notes,omitempty"`

	Snapshot string `json:"snapshot,omitempty"` // where its recording is
}

// DevicePeaks are the peaks of one device as PyTorch counts them, and what was
// taken from the driver.
type DevicePeaks struct {
	Device    int            `json:"device"`
	Requested bytesize.Bytes `json:"requested"`
	Allocated bytesize.Bytes `json:"allocated"`
	Reserved  bytesize.Bytes `json:"reserved"`
	Driver    bytesize.Bytes `json:"driver"`
}

// StepPeak is what was reached by the end of an optimizer step, since the
// program last reset the peaks.
type StepPeak struct {
	Step      int64          `json:"step"`
	Allocated bytesize.Bytes `json:"peak_allocated"`
	Reserved  bytesize.Bytes `json:"peak_reserved"`
}

// OOM is an out-of-memory error of PyTorch's.
type OOM struct {
	Device    int            `json:"device"`
	Requested bytesize.Bytes `json:"requested"`
	Total     bytesize.Bytes `json:"total"`
	Free      bytesize.Bytes `json:"free"`
	Step      int64          `json:"step"`  // the one it happened in
	Where     string         `json:"where"` // the user's own line
}

// Assumption is a value that was made up, because a kernel would have computed it.
type Assumption struct {
	Function string `json:"function"`
	Where    string `json:"where"`
	Assumed  string `json:"assumed"`
	Times    int64  `json:"times"`
	Decided  string `json:"decided,omitempty"` // a size, an index or a branch, if it did
}

// Peak is the most that a process reserved on a device.
func (p *Process) Peak() DevicePeaks {
	var most DevicePeaks
	for _, d := range p.Devices {
		if d.Reserved >= most.Reserved {
			most = d
		}
	}
	return most
}

// summarize reads what processes left in the folder of a run.
func summarize(s Settings, end *ending) (*Summary, error) {
	sum := &Summary{
		Engine: evidence.Emulated, GPU: s.Card.ID, GPUName: s.Card.Name, GPUs: max(s.GPUs, 1),
		Limit: available(s.Card, s.Limit), ExitCode: end.code, Failure: end.failure(), Processes: []Process{},
	}
	names, err := filepath.Glob(filepath.Join(s.Folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var failed error
	for _, name := range names {
		p, err := readProcess(name, s.Card, end)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if p.PID == end.pid {
			sum.Failure = p.Failure
		}
		if p.StepSeconds > 0 {
			sum.Accuracy = &steptime.Stated
		}
		if p.used() {
			sum.Processes = append(sum.Processes, *p)
		}
	}
	sum.judge()
	slices.SortFunc(sum.Processes, func(a, b Process) int {
		if x, y := a.Peak().Reserved, b.Peak().Reserved; x != y {
			return int(min(max(y-x, -1), 1))
		}
		return strings.Compare(a.Rank, b.Rank)
	})
	return sum, failed
}

// judge says of each process whether it fits, and of all of them.
func (s *Summary) judge() {
	fit, unknown := true, len(s.Processes) == 0
	for i := range s.Processes {
		p := &s.Processes[i]
		p.Fits = p.fits(s.Failure)
		if p.Fits == nil {
			unknown = true
		} else {
			fit = fit && *p.Fits
		}
	}
	if !fit || !unknown {
		s.Fits = &fit
	}
}

func readProcess(name string, card *gpu.Card, end *ending) (*Process, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var left struct {
		Process
		StepWork *steptime.Work `json:"step_work"`
		Running  bool           `json:"running"`
	}
	if err := json.Unmarshal(data, &left); err != nil {
		return nil, err
	}
	p := &left.Process
	p.StepSeconds = left.StepWork.Seconds(card)
	end.conclude(p, left.Running)
	recording := strings.TrimSuffix(name, ".json") + ".pickle"
	if _, err := os.Stat(recording); err == nil {
		p.Snapshot = recording
	}
	return p, nil
}

// available is what a card gives out.
func available(c *gpu.Card, limit bytesize.Bytes) bytesize.Bytes {
	if limit > 0 && limit < c.Usable() {
		return limit
	}
	return c.Usable()
}
