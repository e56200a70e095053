package cli

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

var (
	infoMegabytes  = flag.Int("info-megabytes", 125, "about how large a file BenchmarkInfoAgainstPython reads")
	serveMegabytes = flag.Int("serve-megabytes", 125, "about how large a file BenchmarkServeSnapshot uploads")
)

// BenchmarkInfoAgainstPython describes a long recording, as snapshot info does,
// and loads the same file with Python's pickle, which is written in C: in turn,
// three times, with starting the process. It prints the medians.
//
//	go test ./internal/cli -run '^$' -bench InfoAgainstPython -benchtime 1x -info-megabytes 1000
func BenchmarkInfoAgainstPython(b *testing.B) {
	python := findPython(b)
	program, err := buildOnce()
	if err != nil {
		b.Fatal(err)
	}
	file := longRecording(b, python, *infoMegabytes)
	for b.Loop() {
		var ours, theirs usage
		for range 3 {
			theirs.add(b, exec.Command(python, "-c", load, file))
			ours.add(b, exec.Command(program, "snapshot", "info", file))
		}
		b.ReportMetric(theirs.seconds()/ours.seconds(), "times-faster")
		b.ReportMetric(ours.seconds(), "s")
		b.ReportMetric(ours.megabytes(), "MB")
	}
}

// load reads a file as a viewer written in Python would.
const load = "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))"

// findPython returns the Python to compare with. It is found once, so that the
// wrappers of version managers do not count.
func findPython(b *testing.B) string {
	b.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		fmt.Fprintln(os.Stderr, "NOT MEASURED: python3 was not found, so there is nothing to compare with")
		b.Skip("python3 was not found")
	}
	if out, err := exec.Command(python, "-c", "import sys; print(sys.executable, end='')").Output(); err == nil {
		python = string(out)
	}
	return python
}

// BenchmarkServeSnapshot uploads a long recording to a new server and asks for
// its picture, as the page does, three times. It prints the medians, the most
// memory that a server had, and how many times longer Python takes to load the
// file.
//
//	go test ./internal/cli -run '^$' -bench ServeSnapshot -benchtime 1x -serve-megabytes 315
func BenchmarkServeSnapshot(b *testing.B) {
	python := findPython(b)
	if _, err := buildOnce(); err != nil {
		b.Fatal(err)
	}
	file := longRecording(b, python, *serveMegabytes)
	for b.Loop() {
		var theirs usage
		var times, busy []float64
		var peak float64
		for range 3 {
			theirs.add(b, exec.Command(python, "-c", load, file))
			p := startProgram(b)
			before, start := p.processor(), time.Now()
			p.draw(file)
			times = append(times, time.Since(start).Seconds())
			busy = append(busy, (p.processor() - before).Seconds())
			peak = max(peak, p.memory("VmHWM:"))
		}
		slices.Sort(times)
		slices.Sort(busy)
		b.ReportMetric(theirs.seconds()/times[1], "times-faster")
		b.ReportMetric(times[1], "s")
		b.ReportMetric(busy[1], "cpu-s")
		b.ReportMetric(peak, "MB")
	}
}

// draw uploads a snapshot and asks for its picture.
func (p *program) draw(path string) {
	p.b.Helper()
	file, err := os.Open(path)
	if err != nil {
		p.b.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		p.b.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, p.url+"/v1/snapshots", file)
	if err != nil {
		p.b.Fatal(err)
	}
	r.ContentLength = info.Size()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.b.Fatal(err)
	}
	answer.Body.Close()
	picture, err := http.Get(p.url + answer.Header.Get("Location") + "/timeline")
	if err != nil {
		p.b.Fatal(err)
	}
	defer picture.Body.Close()
	if n, err := io.Copy(io.Discard, picture.Body); err != nil || picture.StatusCode != http.StatusOK {
		p.b.Fatalf("%s, %d bytes, %v", picture.Status, n, err)
	}
}

// longRecording repeats the longest recorded file until it has about that many MB.
func longRecording(b *testing.B, python string, megabytes int) string {
	b.Helper()
	small, large := filepath.Join(b.TempDir(), "small.pickle"), filepath.Join(b.TempDir(), "large.pickle")
	unpack := "import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], 'wb'))"
	for _, args := range [][]string{
		{"-c", unpack, "../../testdata/truth/snapshots/gpt2_py_30steps.pickle.xz", small},
		{"../snapshot/testdata/grow.py", small, large, fmt.Sprint(megabytes)},
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
