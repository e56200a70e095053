package predict

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"testing"

	"memorymark/internal/evidence"
	"memorymark/internal/models/modelstest"
	"memorymark/internal/testmachine"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload/workloadtest"
)

var update = flag.Bool("update", false, "rewrite accuracy.json and docs/accuracy.md")

// accuracyDoc is where people read the figures that accuracy.json has.
const accuracyDoc = "../../docs/accuracy.md"

// TestAccuracy holds what is stated of predictions, in the binary and in the
// documentation, to what they come to on the truth now.
func TestAccuracy(t *testing.T) {
	modelstest.NeedSource(t)
	f := newFigures(t)
	data, err := json.MarshalIndent(f.byArchitecture, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{"accuracy.json": append(data, '\n'), accuracyDoc: f.document(), accuracyTable: f.table(), accuracyPicture: f.picture()} {
		if *update {
			testmachine.WriteFile(t, path, want)
			continue
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != string(want) {
			t.Errorf("%s is not what predictions come to now: run make accuracy and read the difference", path)
		}
	}
}

// figures are what predictions come to on the truth.
type figures struct {
	byArchitecture map[string]Accuracy

	allocated, reserved, largest, time lineErrors // of all architectures
	heldAllocated, heldReserved        lineErrors
	drawnAllocated, drawnReserved      lineErrors
	studied                            family // the memory study
	studiedTime, largeTime             lineErrors
	profiledTime                       lineErrors               // on the same card, of another day
	emulatedOwn, emulatedPlain         lineErrors               // step times by the launches that the emulated engine counted
	cardsAllocated, cardsReserved      map[string]lineErrors    // other versions on other cards, emulated
	cards                              map[string]lineErrors    // step times that others published
	kernels                            map[[2]string]lineErrors // that others timed, by card and set
	collectives, megatron, pipelines   lineErrors
	reported                           []evidence.Row // by users
	batches                            []largestBatch
	edges                              []measuredEdge
	engines                            []engineLine
	recorded, recordedExact            int // processes with stacks
	requests, requestsExact            int // processes of which the requests alone were kept
}

func newFigures(t *testing.T) *figures {
	t.Helper()
	f := &figures{byArchitecture: make(map[string]Accuracy), batches: largestBatches(t), edges: measuredEdges(t), engines: engineLines(t)}
	families, times, largest := predictedFamilies(t), timedSteps(t, "throughput.jsonl"), make(map[string]lineErrors)
	for i := range f.batches {
		b := &f.batches[i]
		name := b.workload.Config.Architecture
		largest[name] = append(largest[name], lineError{id: b.ID, share: b.off(), parameters: b.parameters})
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		x := families[name]
		f.byArchitecture[name] = Accuracy{
			Evidence:  Evidence{GPU: workloadtest.Card(t, "h200").Name, PyTorch: PyTorchVersion, Transformers: TransformersVersion},
			Workloads: x.lines, Allocated: x.allocated.sum(), Reserved: x.reserved.sum(),
			LargestBatch: sumIfAny(largest[name]), StepTime: sumIfAny(times[name]),
		}
		f.allocated, f.reserved = append(f.allocated, x.allocated...), append(f.reserved, x.reserved...)
		f.largest, f.time = append(f.largest, largest[name]...), append(f.time, times[name]...)
	}
	others := measuredAdapters(t)
	maps.Copy(others, rankFamilies(t))
	for name, x := range others {
		f.byArchitecture[name] = Accuracy{
			Evidence:  Evidence{GPU: workloadtest.Card(t, "h200").Name, PyTorch: PyTorchVersion, Transformers: TransformersVersion},
			Workloads: x.lines, Allocated: x.allocated.sum(), Reserved: x.reserved.sum(),
		}
	}
	f.heldAllocated, f.heldReserved = heldOut(t)
	f.drawnAllocated, f.drawnReserved = drawn(t)
	f.studied, f.studiedTime = studied(t)
	f.largeTime, f.profiledTime, f.cards = largeSteps(t), profiledSteps(t), networkErrors(t)
	f.emulatedOwn, f.emulatedPlain = emulatedSteps(t)
	f.kernels, f.collectives = kernelErrors(t), collectiveErrors(t)
	f.megatron, f.pipelines = megatronErrors(t), megatronPipelines(t)
	f.cardsAllocated, f.cardsReserved = otherCards(t)
	f.reported = reportedRows(t)
	f.byArchitecture["TransformerLM"] = Accuracy{
		Evidence:  Evidence{GPU: workloadtest.Card(t, "h200").Name, PyTorch: PyTorchVersion},
		Workloads: f.studied.lines, Allocated: f.studied.allocated.sum(), Reserved: f.studied.reserved.sum(), StepTime: sumIfAny(f.studiedTime),
	}
	for _, c := range readLines[recordedProcess](t, "recorded.jsonl") {
		if f.recorded++; predictRecorded(t, c.ID, c.Workload) == "" {
			f.recordedExact++
		}
	}
	for _, c := range tracetest.Lines[requestedProcess](t, requestsFile) {
		if f.requests++; c.difference() == "" {
			f.requestsExact++
		}
	}
	return f
}

func sumIfAny(e lineErrors) *Errors {
	if len(e) == 0 {
		return nil
	}
	sum := e.sum()
	return &sum
}
