package emulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	// Stopped says that the command was ended because its time was over.
	Stopped bool `json:"stopped,omitempty"`
	// Why the values were computed after a run that assumed them, or should have been.
	WhyComputed string `json:"why_computed,omitempty"`
	// Accuracy is how far off estimated times of steps were where they could be checked.
	Accuracy  *steptime.Accuracy `json:"step_seconds_accuracy,omitempty"`
	Serving   *Serving           `json:"serving,omitempty"`  // of an inference server
	Together  []Together         `json:"together,omitempty"` // of cards that processes shared
	Processes []Process          `json:"processes"`          // that used the device, the largest first
	// Unable says why a process could not use the device, if none did.
	Unable string `json:"unable,omitempty"`
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
	Phases    []Phase       `json:"phases,omitempty"` // that used the device, in their order
	Host      HostPeaks     `json:"host"`
	Outside   Outside       `json:"outside"`
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
	// Branches are lines that compared numbers which were made up and that item returned.
	Branches []string `json:"branches,omitempty"`
	Notes    []string `json:"notes,omitempty"`

	Snapshot string `json:"snapshot,omitempty"` // where its recording is

	serving json.RawMessage // what it knows of a server that it is a part of
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

// Phase is the most that a process took while it did one thing, on the device
// where that was most.
type Phase struct {
	Name      string         `json:"phase"` // build, load, train, eval or save
	Allocated bytesize.Bytes `json:"allocated"`
	Reserved  bytesize.Bytes `json:"reserved"`
	// The optimizer step in which most was allocated, 0 if there was none, and
	// the user's line.
	Step  int64  `json:"step,omitempty"`
	Where string `json:"where,omitempty"`
}

// HostPeaks are the most memory of the host that a process had.
type HostPeaks struct {
	Resident bytesize.Bytes `json:"peak"`
	Pinned   bytesize.Bytes `json:"pinned"` // of it, for copies to the device
}

// Outside is what a process took of a card outside of PyTorch's allocator.
type Outside struct {
	Bytes     bytesize.Bytes `json:"bytes"`
	Estimated bool           `json:"estimated,omitempty"`
	Source    string         `json:"source"`
}

// Worst is the phase in which a process allocated most, nil if that is not known.
func (p *Process) Worst() *Phase {
	var worst *Phase
	for i := range p.Phases {
		if ph := &p.Phases[i]; worst == nil || ph.Allocated > worst.Allocated {
			worst = ph
		}
	}
	return worst
}

// ncclBytes is what one communicator of one rank took on an H200.
const ncclBytes = 585e6

// outside adds what a context takes, NCCL, and what others than PyTorch's
// allocator took from the driver.
func (p *Process) outside(card *gpu.Card, communicators int64) Outside {
	peak := p.Peak()
	if communicators > 0 {
		nccl := bytesize.Bytes(communicators) * ncclBytes
		return Outside{
			Bytes: card.Context.Bytes + nccl + max(peak.Driver-peak.Reserved, 0), Estimated: true,
			Source: fmt.Sprintf("%s; NCCL took 585 MB for a communicator of one rank on an H200, and %d are counted so", card.Context.Source, communicators),
		}
	}
	return Outside{Bytes: card.Context.Bytes + max(peak.Driver-peak.Reserved, 0), Estimated: card.Context.Estimated, Source: card.Context.Source}
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
	// Followed is a number of which Process.Branches has all the decisions.
	Followed bool `json:"followed,omitempty"`
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
		Limit: available(s.Card, s.Limit), ExitCode: end.code, Failure: end.failure(), Stopped: end.stopped, Processes: []Process{},
	}
	names, err := fs.Glob(os.DirFS(s.Folder), "*.json") // the folder's own name may have brackets
	if err != nil {
		return nil, err
	}
	var failed error
	sum.Together, failed = readTogether(s.Folder)
	for _, name := range names {
		p, err := readProcess(filepath.Join(s.Folder, name), s.Card, end)
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
		failed = errors.Join(failed, sum.serve(p.serving))
		if p.used() {
			sum.Processes = append(sum.Processes, *p)
		}
	}
	if why, err := os.ReadFile(filepath.Join(s.Folder, "unable")); err == nil && len(sum.Processes) == 0 {
		sum.Unable = string(why)
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
	if s.Serving != nil && s.Serving.lacksMemory() {
		fit = false
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

		Communicators int64 `json:"communicators"`

		Serving json.RawMessage `json:"serving"`
	}
	if err := json.Unmarshal(data, &left); err != nil {
		return nil, err
	}
	p := &left.Process
	p.serving = left.Serving
	p.StepSeconds = left.StepWork.Seconds(card)
	p.Outside = p.outside(card, left.Communicators)
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
