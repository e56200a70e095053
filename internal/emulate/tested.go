package emulate

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"memorymark/internal/bytesize"
)

// Tested is what came of trying the emulated GPU with a version of PyTorch.
type Tested struct {
	Torch        string   `json:"torch"`
	CUDA         string   `json:"cuda"`
	CuDNN        string   `json:"cudnn"`
	Transformers string   `json:"transformers"`
	Answered     []Answer `json:"answered"`
	Failed       []string `json:"failed,omitempty"`  // programs that did not answer
	Missing      []string `json:"missing,omitempty"` // entry points that PyTorch links with and the library does not have
}

// Answer is what a program took: its peaks.
type Answer struct {
	Program   string         `json:"program"`
	Allocated bytesize.Bytes `json:"allocated"`
	Reserved  bytesize.Bytes `json:"reserved"`
}

// tested.json is written by make test-versions.
//
//go:embed tested.json
var testedFile []byte

var loadTested = sync.OnceValue(func() []Tested {
	var out []Tested
	if err := json.Unmarshal(testedFile, &out); err != nil {
		panic(fmt.Sprintf("emulate: tested.json: %v", err)) // it is part of the program
	}
	return out
})

// TestedVersions are the versions of PyTorch that were tried, the oldest first.
func TestedVersions() []Tested { return slices.Clone(loadTested()) }

// FindTested returns what came of trying a version, or of another with the same
// first two numbers.
func FindTested(torch string) (t Tested, ok bool) {
	for _, t := range loadTested() {
		if Minor(t.Torch) == Minor(torch) {
			return t, true
		}
	}
	return Tested{}, false
}

// Minor is a version's first two numbers: "2.11" of "2.11.0+cu130".
func Minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// Programs is how many were tried.
func (t *Tested) Programs() int { return len(t.Answered) + len(t.Failed) }

// OK reports that all of it works.
func (t *Tested) OK() bool { return len(t.Failed) == 0 && len(t.Missing) == 0 }
