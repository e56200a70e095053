package snapshot

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ulikunitz/xz"
)

// childEnv names a file that the test binary reads, in a process of its own,
// instead of running tests: so its peak memory is that of the reader.
const childEnv = "MEMORYMARK_SNAPSHOT_READ"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := timeRead(os.Stdout, path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// timeRead does what testdata/load.py does.
func timeRead(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := time.Now()
	if _, err := Read(f, Limits{}); err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	_, err = fmt.Fprintln(w, seconds, strings.Fields(peak)[0])
	return err
}

// longRun unpacks the longest recorded file, 30 steps of GPT-2.
func longRun(b *testing.B) string {
	b.Helper()
	in, err := os.Open(truthDir + "/snapshots/gpt2_py_30steps.pickle.xz")
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	plain, err := xz.NewReader(bufio.NewReader(in))
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "gpt2_py_30steps.pickle")
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, plain); err != nil {
		b.Fatal(err)
	}
	return path
}

func BenchmarkRead(b *testing.B) {
	path := longRun(b)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		readFile(b, path)
	}
}

func BenchmarkWrite(b *testing.B) {
	s := readFile(b, longRun(b))
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAgainstPython reads a file of 12 MB and one of 300 MB with Python's
// pickle, which is written in C, and with Read, in turn and each time in a new
// process, and prints the medians.
func BenchmarkAgainstPython(b *testing.B) {
	python, err := exec.LookPath("python3")
	if err != nil {
		fmt.Fprintln(os.Stderr, "NOT MEASURED: python3 was not found, so there is nothing to compare with")
		b.Skip("python3 was not found")
	}
	small := longRun(b)
	large := filepath.Join(b.TempDir(), "gpt2_py_repeated.pickle")
	if out, err := exec.Command(python, "testdata/grow.py", small, large, "300").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		path string
		runs int
	}{{small, 9}, {large, 3}} {
		b.Run(strings.TrimSuffix(filepath.Base(c.path), ".pickle"), func(b *testing.B) {
			for range b.N {
				against(b, python, c.path, c.runs)
			}
		})
	}
}

func against(b *testing.B, python, path string, runs int) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var py, noGC, ours cost
	for range runs {
		py.add(b, exec.Command(python, "testdata/load.py", path))
		noGC.add(b, exec.Command(python, "testdata/load.py", path, "nogc"))
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		ours.add(b, cmd)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("\n%s, %.1f MB, medians of %d\n", filepath.Base(path), float64(info.Size())/1e6, runs)
	for _, row := range []struct {
		name string
		cost
	}{{"Python pickle.load", py}, {"the same, gc off", noGC}, {"Go snapshot.Read", ours}} {
		fmt.Printf("  %-20s %8.3f s %8.1f MB peak %6.1f times Go's time\n",
			row.name, row.time(), row.peak(), row.time()/ours.time())
	}
	b.ReportMetric(py.time()/ours.time(), "times-faster")
	b.ReportMetric(py.peak()/ours.peak(), "times-smaller")
}

// cost is that of several runs.
type cost struct{ seconds, megabytes []float64 }

func (c *cost) add(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) != 2 {
		b.Fatalf("%v: %v: %s", cmd.Args, err, out)
	}
	seconds, err1 := strconv.ParseFloat(fields[0], 64)
	kib, err2 := strconv.ParseFloat(fields[1], 64)
	if err1 != nil || err2 != nil {
		b.Fatalf("%v: %s", cmd.Args, out)
	}
	c.seconds = append(c.seconds, seconds)
	c.megabytes = append(c.megabytes, kib*1024/1e6)
}

func (c *cost) time() float64 { return median(c.seconds) }

func (c *cost) peak() float64 { return median(c.megabytes) }

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
