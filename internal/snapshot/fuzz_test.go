package snapshot

import (
	"bytes"
	"os"
	"testing"
)

// fuzzLimits keep a fuzzing process small; a file may not cost more.
var fuzzLimits = Limits{Bytes: 1 << 20, Events: 10_000, Memory: 16 << 20}

// addSeeds seeds a fuzz target with every small fixture.
func addSeeds(f *testing.F) {
	for _, path := range files(f, "testdata/shapes/*.pickle") {
		seed, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Add([]byte("\x80\x04}\x94(\x8c\x08segments]\x8c\rdevice_traces]](}(\x8c\x06action\x8c\x05allocueaau."))
}

// FuzzRead checks that no file makes Read panic, loop or outgrow its limits,
// and that what it accepts can be used.
func FuzzRead(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := Read(bytes.NewReader(file), fuzzLimits)
		if err != nil {
			if s != nil {
				t.Error("an error and a snapshot")
			}
			return
		}
		for _, d := range s.Devices {
			_ = d.CheckValid()
		}
		describe(s)
	})
}

// FuzzRoundTrip checks that what Read accepts survives Write.
func FuzzRoundTrip(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := Read(bytes.NewReader(file), fuzzLimits)
		if err != nil {
			return
		}
		again, _, err := rewrite(s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := diffTraces(s, again); diff != "" {
			t.Errorf("(-first +second)\n%s", diff)
		}
	})
}
