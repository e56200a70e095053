package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
	"memorymark/internal/check"
)

// verdicts are a workload that is within its budget, one that grew, one that is over
// its budget and one that does not fit.
func verdicts() Budgets {
	taken := check.Taken{Engine: "emulated", Allocated: bytesize.GiB, Reserved: 2 * bytesize.GiB}
	return Budgets{[]check.BudgetVerdict{
		{Name: "fine", Line: 3, Taken: taken, Fits: true},
		{Name: "grew", Line: 4, Taken: taken, Fits: true, Reason: "it grew by 1.00 GiB", Grown: []check.Growth{
			{Place: check.Place{For: "optimizer_state", Where: "train.py:12 step", Bytes: bytesize.GiB}, By: bytesize.GiB},
			{Place: check.Place{For: "activation", Where: "train.py:9 forward", Bytes: 0}, By: -bytesize.MiB},
			{Place: check.Place{For: "gradient", Where: "backward", Bytes: 0}, By: bytesize.MiB},
		}},
		{Name: "over <budget>", Line: 5, Taken: taken, Fits: true, Max: bytesize.GiB, Reason: "it takes 2.00 GiB of 1.00 GiB"},
		{Name: "too large", Line: 6, Reason: "it does not fit on the card"},
	}}
}

func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := verdicts().WriteSARIF(&b, "ci/memory.yaml", "1.2.3"); err != nil {
		t.Fatal(err)
	}
	var log sarifLog
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || log.Runs[0].Tool.Driver.Version != "1.2.3" {
		t.Fatalf("%+v", log)
	}
	results := log.Runs[0].Results
	if len(results) != 3 {
		t.Fatalf("%d results, want 3", len(results))
	}
	for i, rule := range []string{"grown", "over-budget", "does-not-fit"} {
		at := results[i].Locations[0].Physical
		if results[i].RuleID != rule || at.Artifact.URI != "ci/memory.yaml" || at.Region.StartLine != i+4 {
			t.Errorf("result %d: %+v", i, results[i])
		}
	}
	if r := results[0].Related; len(r) != 1 || r[0].Physical.Artifact.URI != "ci/train.py" || r[0].Physical.Region.StartLine != 12 || r[0].Message.Text != "1.00 GiB more for optimizer state" {
		t.Errorf("lines that grew: %+v", r)
	}
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := verdicts().WriteJUnit(&b, "memory.yaml"); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	s := suites.Suite
	if s.Tests != 4 || s.Failures != 3 || len(s.Cases) != 4 || s.Cases[0].Failure != nil || s.Cases[2].Name != "over <budget>" {
		t.Errorf("%+v", s)
	}
	if f := s.Cases[1].Failure; f == nil || f.Type != "grown" || !strings.Contains(f.Text, "train.py:12 step") || strings.Contains(f.Text, "\x1b") {
		t.Errorf("%+v", f)
	}
}
