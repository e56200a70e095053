package workload

import (
	"flag"
	"strings"
	"testing"

	"memorymark/internal/models/modelstest"
	"memorymark/internal/testmachine"
)

var update = flag.Bool("update", false, "rewrite testdata/said.txt")

// TestSaid compares what is said of workloads with testdata/said.txt, where each is
// followed by it: that it is taken, and on which GPUs, or what is wrong. A workload
// behind "runnable" need not be modelled.
func TestSaid(t *testing.T) {
	modelstest.NeedSource(t)
	const golden = "testdata/said.txt"
	file := testmachine.ReadFile(t, golden)
	var said strings.Builder
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "\t") {
			text := strings.TrimSuffix(line, "\n")
			said.WriteString(line + "\t" + strings.ReplaceAll(say(text), "\n", "\n\t") + "\n")
		}
	}
	if *update {
		file = []byte(said.String())
		testmachine.WriteFile(t, golden, file)
	}
	if len(file) == 0 {
		t.Fatal("there are no workloads")
	}
	want, got := strings.Split(string(file), "\n"), strings.Split(said.String(), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("line %d of %s, which make golden rewrites: %q, want %q", i+1, golden, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}

func say(text string) string {
	parse := Parse
	if rest, ok := strings.CutPrefix(text, "runnable "); ok {
		text, parse = rest, ParseRunnable
	}
	switch w, err := parse([]byte(text)); {
	case err != nil:
		return err.Error()
	case w.Parallel != nil:
		return "taken: " + w.Parallel.Text()
	default:
		return "taken"
	}
}
