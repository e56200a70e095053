package check

import (
	"encoding/json"
	"strings"
	"testing"

	"memorymark/internal/bytesize"
)

const file = `
baseline: memory.baseline.json
allow: 1 %
workloads:
  - {name: fits, model: bert, batch: 32, card: a10}
  - {model: gpt2, max: 22GiB, gpu: h200}
`

func TestRead(t *testing.T) {
	f, err := Read([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if f.Baseline != "memory.baseline.json" || f.Allow != 0.01 || len(f.Items) != 2 {
		t.Errorf("%+v", f)
	}
	if fits := f.Items[0]; fits.Name != "fits" || fits.Line != 5 || fits.Max != 0 || fits.Draft.Text("gpu") != "a10" {
		t.Errorf("%+v", fits)
	}
	if named := f.Items[1]; named.Name != "gpt2" || named.Max != 22*bytesize.GiB {
		t.Errorf("%+v", named)
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"workloads: [":                                   "not YAML",
		"workloads: []":                                  "no workloads",
		"wrkloads: [{model: bert}]":                      "wrkloads",
		"workloads: [{model: bert, max: lots}]":          "an amount of memory",
		"workloads: [{model: bert, max: 0GiB}]":          "an amount of memory",
		"workloads: [{model: bert, max: 22}]":            "an amount of memory",
		"workloads: [{model: bert}, {model: bert}]":      "another one is also called",
		"workloads: [{batch: 3}]":                        "no name",
		"workloads: [{model: bert, card: a10, gpu: t4}]": "give only one",
		"allow: much\nworkloads: [{model: bert}]":        "allow is",
		"allow: -1%\nworkloads: [{model: bert}]":         "allow is",
		"- {model: bert}":                                "not a budget file",
	} {
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestJudge(t *testing.T) {
	base := &Baseline{Workloads: map[string]Taken{"w": {Allocated: 1000, Places: []Place{{"activation", "a", 600}, {"parameter", "b", 400}}}}}
	grew := Taken{Allocated: 1020, Reserved: 2000, Places: []Place{{"activation", "a", 700}, {"gradient", "c", 320}}}
	for _, test := range []struct {
		name  string
		item  Item
		taken Taken
		allow float64
		fails bool
	}{
		{"grew", Item{Name: "w"}, grew, 0.01, true},
		{"grew as much as it may", Item{Name: "w"}, grew, 0.02, false},
		{"is new", Item{Name: "new"}, grew, 0, false},
		{"takes more than it may", Item{Name: "new", Max: 1999}, grew, 0, true},
		{"takes all it may", Item{Name: "new", Max: 2000}, grew, 0, false},
		{"does not fit", Item{Name: "w"}, Taken{TooLarge: "it requests 2 GiB"}, 0, true},
	} {
		if v := Judge(test.item, test.taken, base, test.allow); (v.Reason != "") != test.fails {
			t.Errorf("%s: %q", test.name, v.Reason)
		}
	}
	got := Judge(Item{Name: "w"}, grew, base, 1).Grown
	want := []Growth{{Place{"gradient", "c", 320}, 320}, {Place{"activation", "a", 700}, 100}, {Place{"parameter", "b", 0}, -400}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// TestJudgeOfWhatDoesNotFit compares nothing: there is no peak.
func TestJudgeOfWhatDoesNotFit(t *testing.T) {
	base := &Baseline{Workloads: map[string]Taken{"w": {Allocated: 1000, Places: []Place{{"activation", "a", 600}}}}}
	v := Judge(Item{Name: "w", Max: 10}, Taken{TooLarge: "it requests 2 GiB, but only 1 GiB is free"}, base, 0)
	if v.Fits || v.Before != nil || v.Grown != nil || v.Reason != "it does not fit on the card: it requests 2 GiB, but only 1 GiB is free" {
		t.Errorf("%+v", v)
	}
	data, err := json.Marshal(v)
	if err != nil || strings.Contains(string(data), "peak_") {
		t.Errorf("%s, %v", data, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(file))
	f.Fuzz(func(t *testing.T, data []byte) {
		if f, err := Read(data); err == nil && (len(f.Items) == 0 || f.Allow < 0) {
			t.Errorf("%+v", f)
		}
	})
}
