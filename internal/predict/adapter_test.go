package predict

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"memorymark/internal/snapshot/snapshottest"
	"memorymark/internal/workload"
)

const adapterDir = "testdata/adapters"

// TestRecordedAdapters predicts processes that train adapters and compares them
// event by event with recordings of PEFT and bitsandbytes on an emulated H200
// (record.py there).
func TestRecordedAdapters(t *testing.T) {
	f, err := os.Open(adapterDir + "/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c recordedProcess
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			w, err := workload.Parse(c.Workload)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Run(w, h200, 2)
			if err != nil {
				t.Fatal(err)
			}
			want := snapshottest.Trace(t, adapterDir+"/"+c.ID+".pickle.xz")
			difference := compareRequests(p.Trace(), want, func(event int) bool { return dropsCasts(want, event) })
			if difference != "" {
				t.Error(difference)
			}
		})
	}
}
