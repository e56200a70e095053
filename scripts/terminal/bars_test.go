package main

import (
	"os"
	"testing"

	"memorymark/internal/testmachine"
)

// The picture of the README has the figures of docs/benchmarks.md.
func TestBars(t *testing.T) {
	t.Chdir("../..")
	file := t.TempDir() + "/tools.svg"
	if err := writeBars(file); err != nil {
		t.Fatal(err)
	}
	drawn := testmachine.ReadFile(t, file)
	shown, err := os.ReadFile("docs/images/tools.svg")
	if err != nil || string(shown) != string(drawn) {
		t.Errorf("docs/images/tools.svg is not what docs/benchmarks.md says; make pictures draws it again (%v)", err)
	}
	text := testmachine.ReadFile(t, "docs/benchmarks.md")
	bars, err := readBars(string(text))
	if err != nil || len(bars) != 6 || bars[0].exact <= bars[2].exact {
		t.Errorf("%+v, %v", bars, err)
	}
}
