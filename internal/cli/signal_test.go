package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"memorymark/internal/testmachine"
)

// atOnce is far more than a command that is told to end takes, and far less than
// any of the commands below would.
const atOnce = 5 * time.Second

// deepConfig is of a model that takes minutes to compute with.
const deepConfig = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 64,
	"num_hidden_layers": 1000, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000}`

// TestSignals tells every command that may take long to end while it is busy: by
// computing, by a program that it runs, or by a read that does not return.
func TestSignals(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it looks at processes in /proc")
	}
	dir := signalFolder(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	program := func(name string) string { return sleeper(t, dir, name) }
	for _, c := range []struct {
		name string
		args []string
		busy time.Duration          // how long it is before it is told, half a second unless it says otherwise
		by   map[syscall.Signal]int // the exit codes
		pid  string                 // a file with the process of a program that it runs, "" for none
	}{
		{name: "analyze", args: []string{"analyze", file("deep.json"), "--engine", "predicted", "--gpu", "h200", "--accumulate", "1024", "--checkpointing", "--sweep", "--global-batch", "1000000"}},
		{name: "analyze a file", args: []string{"analyze", "-f", "-"}},
		{name: "analyze, measured", args: []string{"analyze", "bert", "--engine", "measured", "--python", program("measured")}, pid: file("measured.pid")},
		{name: "fit", args: []string{"fit", file("deep.json"), "--gpu", "h200", "--batch", "1024", "--sequence", "512"}},
		{name: "plan", args: []string{"plan", file("deep.json")}},
		{name: "predict", args: []string{"predict", "-f", file("deep.jsonl")}},
		{name: "sweep", args: []string{"sweep", file("deep.json"), "--engine", "predicted", "--batch-size", strings.Join(numbers(1, 60), ","), "--gpu", "h200"}},
		{name: "profile", args: []string{"profile", file("deep.json"), "--engine", "predicted", "--measure-steps", "100", "--output", "-", "--gpu", "h200"}},
		{name: "report", args: []string{"report", "--engine", "predicted", "--batch-size", "1", "--context-length", strings.Join(numbers(101, 160), ","), "--output", file("report")}},
		{name: "check", args: []string{"check", file("memory.yaml")}},
		{name: "run", args: []string{"run", "--gpu", "rtx-4090", "--", program("run")}, pid: file("run.pid")},
		{name: "snapshot replay", args: []string{"snapshot", "replay", file("large.pickle")}, busy: 150 * time.Millisecond},
		{name: "snapshot top of a pipe", args: []string{"snapshot", "top", "-"}},
		{name: "doctor", args: []string{"doctor", "--python", program("doctor")}, pid: file("doctor.pid")},
		// What serves until it is told to end has done all it was to do.
		{name: "serve", args: []string{"serve", "--listen", "127.0.0.1:0", "--data", file("data"), "--no-measuring"}, by: map[syscall.Signal]int{syscall.SIGINT: exitOK, syscall.SIGTERM: exitOK}},
		{name: "worker", args: []string{"worker", "--join", serve(t, "--no-measuring"), "--card", "a10", "--python", program("worker")}, by: map[syscall.Signal]int{syscall.SIGINT: exitOK, syscall.SIGTERM: exitOK}},
	} {
		if c.by == nil {
			c.by = map[syscall.Signal]int{syscall.SIGINT: exitInterrupted, syscall.SIGTERM: exitTerminated}
		}
		for signal, code := range c.by {
			t.Run(fmt.Sprintf("%s, %v", c.name, signal), func(t *testing.T) {
				_ = os.Remove(c.pid)
				endsAt(t, cmp.Or(c.busy, 500*time.Millisecond), c.pid, signal, code, c.args...)
				if c.pid != "" {
					checkGone(t, c.pid)
				}
			})
		}
	}
}

// endsAt runs a command, tells it to end while it is busy, and looks at how it does. It is
// busy no sooner than the program that it runs, if it runs one, has written its file.
func endsAt(t *testing.T, busy time.Duration, pidFile string, signal syscall.Signal, code int, args ...string) {
	t.Helper()
	c := exec.Command("memorymark", args...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	begun, begins, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Close()
	if code == exitOK {
		c.Stdout = begins // what serves says where
	} else {
		c.Env, c.ExtraFiles = append(os.Environ(), tellStart+"=1"), []*os.File{begins}
	}
	stdin, err := c.StdinPipe() // which stays open
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	begins.Close()
	_, _ = begun.Read(make([]byte, 1)) // until it has begun
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
	}()
	select {
	case <-ended:
		t.Fatalf("it ended by itself, with %d: %s", c.ProcessState.ExitCode(), &stderr)
	case <-time.After(busy):
	}
	for pidFile != "" && !isWritten(pidFile) {
		select {
		case <-ended:
			t.Fatalf("it ended before it ran the program, with %d: %s", c.ProcessState.ExitCode(), &stderr)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := c.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = c.Process.Kill()
		<-ended
		t.Fatalf("it does not end: %s", &stderr)
	}
	took := time.Since(began)
	t.Logf("it took %v", took.Round(time.Millisecond))
	if took > atOnce || c.ProcessState.ExitCode() != code {
		t.Errorf("it ended after %v with %d, want %d: %s", took, c.ProcessState.ExitCode(), code, &stderr)
	}
	if code != exitOK && !strings.Contains(stderr.String(), "memorymark: interrupted\n") {
		t.Errorf("it says %q", &stderr)
	}
}

func isWritten(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() > 0
}

// checkGone checks that a program that was begun has ended.
func checkGone(t *testing.T, pidFile string) {
	t.Helper()
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatalf("the program was not run: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if syscall.Kill(pid, 0) != nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// sleeper is a program that says which process it is, ignores what it is asked,
// and is there for minutes.
func sleeper(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	script := fmt.Sprintf("#!/bin/sh\ntrap '' INT TERM\necho $$ > %s.pid\nexec sleep 300\n", path)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// signalFolder has what the commands are to work on.
func signalFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	entry := map[string]any{"config": json.RawMessage(deepConfig), "gpu": "h200", "accumulate": 512, "batch": 1}
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	budgets := "workloads:\n"
	for i := range 200 {
		budgets += fmt.Sprintf("  - {name: n%d, model: llama-3.1-70b, batch: %d, card: h200}\n", i, i+1)
	}
	for name, content := range map[string]string{
		"deep.json": deepConfig, "deep.jsonl": strings.Repeat(string(line)+"\n", 500), "memory.yaml": budgets,
	} {
		testmachine.WriteFile(t, filepath.Join(dir, name), content)
	}
	var stderr bytes.Buffer
	if code := Run(t.Context(), []string{"predict", filepath.Join(dir, "deep.json"), "--accumulate", "4", "--snapshot", filepath.Join(dir, "large.pickle")}, strings.NewReader(""), io.Discard, &stderr); code > exitNo {
		t.Fatalf("%d: %s", code, &stderr)
	}
	return dir
}

// numbers are the whole numbers of a range.
func numbers(from, to int) []string {
	var out []string
	for n := from; n <= to; n++ {
		out = append(out, strconv.Itoa(n))
	}
	return out
}
