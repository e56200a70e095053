package predict

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/models/modelstest"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
	"memorymark/internal/workload"
)

const truthDir = "../../testdata/truth"

// h200 is the card of the recordings.
var h200 = torch.Device{SMs: 132, ThreadsPerSM: 2048, Major: 9, Minor: 0}

// readLines reads a file of JSON lines.
func readLines[T any](t *testing.T, file string) []T {
	t.Helper()
	f, err := os.Open(truthDir + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line T
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, line)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%s: %d lines, %v", file, len(out), err)
	}
	return out
}

// recordedProcess is a line of recorded.jsonl.
type recordedProcess struct {
	ID       string
	Rank     int64 // 0 where there is one
	Workload json.RawMessage
}

// TestRecorded predicts the recorded processes and compares them event by
// event: every allocation and every free, in order.
func TestRecorded(t *testing.T) {
	for _, c := range readLines[recordedProcess](t, "recorded.jsonl") {
		t.Run(c.ID, func(t *testing.T) {
			_, err := workload.Parse(c.Workload)
			modelstest.NeedSourceFor(t, err)
			if difference := predictRecorded(t, c.ID, c.Workload); difference != "" {
				t.Error(difference)
			}
		})
	}
}

// predictRecorded returns the first difference between a prediction and its
// recording.
func predictRecorded(t *testing.T, id string, data []byte) (difference string) {
	defer func() {
		if r := recover(); r != nil {
			difference = fmt.Sprint(r, "\n", string(debug.Stack()))
		}
	}()
	w, err := workload.Parse(data)
	if err != nil {
		return err.Error()
	}
	p, err := (&program{w: w}).run(h200, 2, nil)
	if err != nil {
		return err.Error()
	}
	want := tracetest.Trace(t, truthDir+"/recorded/"+id+".pickle.xz")
	return compareRequests(p.requests(), want, func(event int) bool { return dropsCasts(want, event) })
}

// dropsCasts reports whether a free is autocast's, of its cached casts: it
// drops them in the order of a hash map of addresses on the CPU (cached_casts,
// aten/src/ATen/autocast_mode.cpp).
func dropsCasts(tr *trace.Trace, event int) bool {
	return slices.ContainsFunc(tr.Stacks.Frames(tr.Events[event].Stack), func(f trace.Frame) bool {
		return strings.HasSuffix(f.File, "autocast_mode.py")
	})
}

// compareRequests returns the first request that differs, with what is around
// it. Runs of frees may have another order only where the recording says that
// no one chose it.
func compareRequests(got, want *trace.Trace, mayReorder func(event int) bool) string {
	c := trace.Compare(got, want)
	for _, event := range c.Reordered {
		if !mayReorder(event) {
			return fmt.Sprintf("the frees from event %d on have another order, by%s", event, caller(want, event))
		}
	}
	at := [2]int{c.Before, c.Before}
	if !c.Differ() && c.Beyond == [2]int{} {
		return ""
	}
	if c.Differ() {
		at = c.Stretches[0].From
	}
	var b strings.Builder
	fmt.Fprintf(&b, "request %d of %d differs\n", at[1], len(c.Requests[1]))
	for i := -min(8, at[0], at[1]); i < 10; i++ {
		fmt.Fprintf(&b, "%5d  predicted %-20s recorded %-20s", at[1]+i, request(c.Requests[0], at[0]+i), request(c.Requests[1], at[1]+i))
		if at[1]+i < len(c.Requests[1]) {
			b.WriteString(caller(want, c.Requests[1][at[1]+i].Event))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// request writes an allocation as "+#12 4096" and a free as "-#12 4096".
func request(list []trace.AllocatorRequest, i int) string {
	switch {
	case i >= len(list):
		return ""
	case list[i].Free:
		return fmt.Sprintf("-#%d %d", list[i].ID, list[i].Size)
	default:
		return fmt.Sprintf("+#%d %d", list[i].ID, list[i].Size)
	}
}

// caller writes the innermost frames of who asked.
func caller(tr *trace.Trace, event int) string {
	who := ""
	for _, f := range tr.Stacks.Frames(tr.Events[event].Stack) {
		if who += fmt.Sprintf(" %s:%d", f.File[max(0, len(f.File)-24):], f.Line); len(who) > 70 {
			break
		}
	}
	return who
}

// ran is a program that has run steps.
func ran(t *testing.T, w *workload.Workload, d torch.Device, steps int) *program {
	t.Helper()
	p, err := (&program{w: w}).run(d, steps, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// built is a program that has built its model.
func built(t *testing.T, w *workload.Workload, d torch.Device) *program {
	t.Helper()
	p := &program{w: w}
	if err := p.build(d, nil); err != nil {
		t.Fatal(err)
	}
	return p
}
