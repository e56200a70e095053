package cli

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

var infoMegabytes = flag.Int("info-megabytes", 125, "about how large a file BenchmarkInfoAgainstPython reads")

// BenchmarkInfoAgainstPython describes a long recording, as snapshot info does,
// and loads the same file with Python's pickle, which is written in C: in turn,
// three times, with starting the process. It prints the medians.
//
//	go test ./internal/cli -run '^$' -bench InfoAgainstPython -benchtime 1x -info-megabytes 1000
func BenchmarkInfoAgainstPython(b *testing.B) {
	python, err := exec.LookPath("python3")
	if err != nil {
		fmt.Fprintln(os.Stderr, "NOT MEASURED: python3 was not found, so there is nothing to compare with")
		b.Skip("python3 was not found")
	}
	// Found once, so that the wrappers of version managers do not count.
	if out, err := exec.Command(python, "-c", "import sys; print(sys.executable, end='')").Output(); err == nil {
		python = string(out)
	}
	program, err := buildOnce()
	if err != nil {
		b.Fatal(err)
	}
	file := longRecording(b, python)
	for b.Loop() {
		var ours, theirs usage
		for range 3 {
			theirs.add(b, exec.Command(python, "-c", "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))", file))
			ours.add(b, exec.Command(program, "snapshot", "info", file))
		}
		b.ReportMetric(theirs.seconds()/ours.seconds(), "times-faster")
		b.ReportMetric(ours.seconds(), "s")
		b.ReportMetric(ours.megabytes(), "MB")
	}
}

// longRecording repeats the longest recorded file.
func longRecording(b *testing.B, python string) string {
	b.Helper()
	small, large := filepath.Join(b.TempDir(), "small.pickle"), filepath.Join(b.TempDir(), "large.pickle")
	unpack := "import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], 'wb'))"
	for _, args := range [][]string{
		{"-c", unpack, "../../testdata/truth/snapshots/gpt2_py_30steps.pickle.xz", small},
		{"../snapshot/testdata/grow.py", small, large, fmt.Sprint(*infoMegabytes)},
	} {
		if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	return large
}

// usage is what several runs of a command took.
type usage struct {
	times []time.Duration
	peaks []int64 // resident KiB
}

func (u *usage) add(b *testing.B, c *exec.Cmd) {
	b.Helper()
	start := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v: %s", c.Args, err, out)
	}
	u.times = append(u.times, time.Since(start))
	u.peaks = append(u.peaks, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
}

func (u *usage) seconds() float64 {
	return slices.Sorted(slices.Values(u.times))[len(u.times)/2].Seconds()
}

func (u *usage) megabytes() float64 { return float64(slices.Max(u.peaks)) * 1024 / 1e6 }
