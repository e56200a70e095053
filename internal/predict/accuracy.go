package predict

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

// Accuracy is how far predictions of an architecture were off on measured
// workloads (testdata/truth): the most of any step of a workload.
type Accuracy struct {
	Workloads int    `json:"workloads"`
	Allocated Errors `json:"allocated"`
	Reserved  Errors `json:"reserved"`
}

// Errors sums up how far one statistic was off. Median and Worst are shares of
// what was measured: 0.01 is one per cent.
type Errors struct {
	Exact  int     `json:"exact"` // workloads predicted to the byte
	Within int     `json:"within_1_percent"`
	Median float64 `json:"median"`
	Worst  float64 `json:"worst"`
}

// accuracy.json is written by go test ./internal/predict -run TestPeaks -update.
//
//go:embed accuracy.json
var accuracyFile []byte

var loadAccuracy = sync.OnceValue(func() map[string]Accuracy {
	var out map[string]Accuracy
	if err := json.Unmarshal(accuracyFile, &out); err != nil {
		panic(fmt.Sprintf("predict: accuracy.json: %v", err)) // it is part of the program
	}
	return out
})

// StatedAccuracy returns what is known of predictions of an architecture; ok
// is false if none was measured.
func StatedAccuracy(architecture string) (a Accuracy, ok bool) {
	a, ok = loadAccuracy()[architecture]
	return a, ok
}
