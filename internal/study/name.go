package study

import (
	"fmt"
	"path/filepath"
	"strings"

	"memorymark/internal/workload"
)

// profileTypes are the parts of a step by the names that profiles have.
var profileTypes = []struct {
	name  string
	phase workload.Phase
}{
	{"forward", workload.Forward}, {"backward", workload.Backward}, {"training", workload.Train}, {"inference", workload.Infer},
}

// PhaseOf returns the phase of a workload that a profile type means.
func PhaseOf(profileType string) (workload.Phase, error) {
	for _, t := range profileTypes {
		if t.name == profileType {
			return t.phase, nil
		}
	}
	return "", fmt.Errorf("profile-type is %q; it must be forward, backward, training or inference", profileType)
}

// ProfileType is the name that profiles have for a phase.
func ProfileType(p workload.Phase) string {
	for _, t := range profileTypes {
		if t.phase == p {
			return t.name
		}
	}
	return string(p)
}

// CellName names the files of a cell: "2.7B_ctx512_training", and the
// precision after it if it is not fp32.
func CellName(w *workload.Workload) string {
	name := fmt.Sprintf("%s_ctx%d_%s", fileName(SizeOf(w.Name())), w.Sequence, ProfileType(w.Phase))
	if w.TakesImages() {
		name = fmt.Sprintf("%s_%dpx_%s", fileName(w.Name()), w.Image, ProfileType(w.Phase))
	}
	if w.Precision != workload.FP32 {
		name += "_" + PrecisionName(w.Precision)
	}
	return name
}

// PrecisionName is what people call a precision: bf16 for autocast in bf16.
func PrecisionName(p workload.Precision) string { return strings.TrimPrefix(string(p), "amp-") }

// fileName makes a name that is a file's in every system.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) {
			return '-'
		}
		return r
	}, filepath.Base(s))
}
