package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// These benchmarks run the real program and talk to it over loopback. They
// print figures and judge nothing: a machine that does other things is slower.
//
//	go test ./internal/cli -run '^$' -bench Serve -benchtime 1x -load-time 10m
var (
	loadTime = flag.Duration("load-time", 10*time.Second, "how long BenchmarkServePredictions asks")
	loadRate = flag.Int("load-rate", 1000, "how often a second it asks")
)

// program is a server in a process of its own.
type program struct {
	b   *testing.B
	url string
	pid int
}

var buildOnce = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "memorymark-bench-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "memorymark")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/memorymark").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// startProgram starts a server and waits until it says where it is.
func startProgram(b *testing.B) *program {
	b.Helper()
	path, err := buildOnce()
	if err != nil {
		b.Fatal(err)
	}
	c := exec.Command(path, "serve", "--json", "--listen", "127.0.0.1:0", "--data", b.TempDir(), "--log-level", "warn")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	})
	var said serving
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		b.Fatal(err)
	}
	return &program{b, said.URL, c.Process.Pid}
}

// resident is how much memory the program has, in megabytes.
func (p *program) resident() float64 { return p.memory("VmRSS:") }

// memory is a line of what the system says of the program's memory, in
// megabytes.
func (p *program) memory(line string) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		p.b.Skip("NOT MEASURED: memory is read from /proc")
	}
	for text := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(text, line); ok {
			kb, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			if err != nil {
				p.b.Fatal(err)
			}
			return kb * 1024 / 1e6
		}
	}
	return 0
}

// processor is how much time of the processor the program has had. Unlike the
// time on the clock it does not depend on what else the machine does.
func (p *program) processor() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		p.b.Skip("NOT MEASURED: processor time is read from /proc")
	}
	_, after, _ := strings.Cut(string(data), ") ") // behind the name, from the third field on
	fields := strings.Fields(after)
	var ticks time.Duration
	for _, i := range []int{11, 12} { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			p.b.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

func (p *program) post(client *http.Client, path, body string) (int, error) {
	r, err := client.Post(p.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return r.StatusCode, err
}

// BenchmarkServeStart is from the command line to the first answer.
func BenchmarkServeStart(b *testing.B) {
	if _, err := buildOnce(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := startProgram(b)
		r, err := http.Get(p.url + "/health")
		if err != nil {
			b.Fatal(err)
		}
		r.Body.Close()
		b.ReportMetric(p.resident(), "MB")
		b.ReportMetric(p.processor().Seconds()*1000, "cpu-ms")
	}
}

// workloadOf is one of n workloads, as people ask for them.
func workloadOf(n int) string {
	models := []string{"bert", "gpt2", "resnet", "distilbert", "vit"}
	precisions := []string{"fp32", "amp-bf16"}
	return fmt.Sprintf(`{"model":%q,"precision":%q,"batch":%d}`, models[n%len(models)], precisions[n/len(models)%len(precisions)], 1+n/10)
}

// BenchmarkServeDistinct asks for predictions that were never asked for, one
// after the other on each of two connections.
func BenchmarkServeDistinct(b *testing.B) {
	p := startProgram(b)
	next := make(chan int)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for n := range next {
				if status, err := p.post(http.DefaultClient, "/v1/predictions", workloadOf(n)); err != nil || status != http.StatusOK {
					b.Errorf("%d, %v", status, err)
				}
			}
		})
	}
	begin, n := time.Now(), 0
	for b.Loop() {
		next <- n
		n++
	}
	close(next)
	all.Wait()
	b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "predictions/s")
	b.ReportMetric(p.processor().Seconds()*1000/float64(n), "cpu-ms/prediction")
}

// BenchmarkServePredictions offers a number of requests a second, whether the
// answers keep up or not, and says how long the answers took. Of 20 requests
// 19 are for one of 500 workloads that were asked for before, as when people
// move sliders and colleagues follow links; one is new.
func BenchmarkServePredictions(b *testing.B) {
	const known, fresh = 500, 20
	p := startProgram(b)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	for n := range known {
		if status, err := p.post(client, "/v1/predictions", workloadOf(n)); err != nil || status != http.StatusOK {
			b.Fatalf("%d, %v", status, err)
		}
	}
	for b.Loop() {
		before, busy := p.resident(), p.processor()
		took, failed := p.offer(client, *loadRate, func(i int) string {
			if i%fresh == 0 {
				return workloadOf(known + i/fresh)
			}
			return workloadOf(rand.IntN(known))
		})
		slices.Sort(took)
		at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1000 }
		b.ReportMetric(float64(len(took))/loadTime.Seconds(), "answers/s")
		b.ReportMetric(at(0.5), "p50-ms")
		b.ReportMetric(at(0.99), "p99-ms")
		b.ReportMetric(at(1), "max-ms")
		b.ReportMetric(float64(failed), "failed")
		b.ReportMetric((p.processor()-busy).Seconds()/loadTime.Seconds(), "cores")
		b.ReportMetric(before, "MB-before")
		b.ReportMetric(p.resident(), "MB-after")
	}
}

// offer sends requests at a rate and returns how long each took from when it
// was due, so that waiting behind others counts.
func (p *program) offer(client *http.Client, rate int, body func(i int) string) (took []time.Duration, failed int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := time.Now()
	for i := range int(loadTime.Seconds() * float64(rate)) {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		all.Go(func() {
			status, err := p.post(client, "/v1/predictions", body(i))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || status != http.StatusOK {
				p.b.Logf("request %d failed: status %d, %v", i, status, err)
				failed++
				return
			}
			took = append(took, time.Since(due))
		})
	}
	all.Wait()
	return took, failed
}

// BenchmarkServeStreams watches an analysis that waits, many times over.
func BenchmarkServeStreams(b *testing.B) {
	const streams = 500
	p := startProgram(b)
	r, err := http.Post(p.url+"/v1/analyses", "application/json", strings.NewReader(`{"workload":{"model":"bert","gpu":"t4"},"engine":"measured"}`))
	if err != nil {
		b.Fatal(err)
	}
	var a struct{ ID string }
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil || a.ID == "" {
		b.Fatalf("%s, %v", r.Status, err)
	}
	r.Body.Close()
	for b.Loop() {
		before := p.resident()
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		var first sync.WaitGroup
		first.Add(streams)
		for range streams {
			all.Go(func() { p.watch(ctx, a.ID, first.Done) })
		}
		first.Wait()
		time.Sleep(5 * time.Second)
		b.ReportMetric(p.resident(), "MB")
		b.ReportMetric(p.resident()-before, "MB-more")
		stop()
		all.Wait()
	}
}

// watch reads a stream until the context ends.
func (p *program) watch(ctx context.Context, id string, first func()) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/v1/analyses/"+id+"/events", nil)
	if err != nil {
		p.b.Error(err)
		return
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.b.Error(err)
		return
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	line, err := lines.ReadBytes('\n')
	if err != nil || !bytes.HasPrefix(line, []byte("event: analysis")) {
		p.b.Errorf("%s, %v", line, err)
	}
	first()
	_, _ = io.Copy(io.Discard, lines)
}
