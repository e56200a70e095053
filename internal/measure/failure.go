package measure

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Class is why steps failed.
type Class string

// The classes. Only the first two say that a batch is too large.
const (
	OutOfMemory Class = "out_of_memory" // of the device
	LaunchLimit Class = "launch_limit"  // a kernel cannot take that many elements
	HostMemory  Class = "host_memory"
	Crash       Class = "crash" // the process died
	Timeout     Class = "timeout"
	Cancelled   Class = "cancelled"
	Missing     Class = "missing" // a package is not there
	Other       Class = "other"
)

// Failure is why a probe or a batch of it failed.
type Failure struct {
	Class     Class  `json:"class"`
	Kind      string `json:"error,omitempty"` // Python's name of it
	Message   string `json:"message"`
	Phase     string `json:"phase,omitempty"` // build, inputs, forward, backward or optimizer
	Step      int    `json:"step,omitempty"`  // from 1
	Signal    string `json:"signal,omitempty"`
	Package   string `json:"package,omitempty"` // that is missing
	Allocated int64  `json:"allocated_bytes,omitempty"`
	Reserved  int64  `json:"reserved_bytes,omitempty"`
	Traceback string `json:"traceback,omitempty"`
	Output    string `json:"output,omitempty"` // the last lines that the prober printed
}

// UnmarshalJSON bounds what a prober says: user code may write the message, and a job
// keeps it.
func (f *Failure) UnmarshalJSON(data []byte) error {
	type plain Failure
	if err := json.Unmarshal(data, (*plain)(f)); err != nil {
		return err
	}
	for _, text := range []*string{(*string)(&f.Class), &f.Kind, &f.Phase, &f.Signal, &f.Package} {
		*text = begin(*text, 200)
	}
	f.Message = begin(f.Message, 4<<10)
	for _, text := range []*string{&f.Traceback, &f.Output} {
		*text = strings.ToValidUTF8((*text)[max(len(*text)-tailSize, 0):], "")
	}
	return nil
}

// begin is the beginning of a text.
func begin(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + " […]"
}

// TooBig reports whether a smaller batch would have helped.
func (f *Failure) TooBig() bool { return f.Class == OutOfMemory || f.Class == LaunchLimit }

var classText = map[Class]string{
	OutOfMemory: "out of memory", LaunchLimit: "a kernel cannot take so large a batch", HostMemory: "out of host memory",
	Crash: "crashed", Timeout: "took too long and was killed", Cancelled: "cancelled", Missing: "a package is missing", Other: "failed",
}

// Summary says in a few words what happened and when.
func (f *Failure) Summary() string {
	s := classText[f.Class]
	if f.Phase != "" {
		s += " in " + f.Phase
	}
	if f.Step > 0 {
		s += fmt.Sprintf(" of step %d", f.Step)
	}
	return s
}

// Error says what happened, with what Python printed.
func (f *Failure) Error() string {
	s := f.Summary()
	if f.Message != "" && f.Message != string(f.Class) {
		s += ": " + f.Message
	}
	for _, text := range []string{f.Traceback, f.Output} {
		if text = strings.TrimSpace(text); text != "" {
			s += "\n" + text
		}
	}
	return s
}
