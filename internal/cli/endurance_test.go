package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// enduranceVariable says how long "make endurance" takes, a third of which is
// ours; the rest is package job's.
const enduranceVariable = "MEMORYMARK_ENDURANCE"

// What must hold, however many clients do what they should not, on a machine
// that has other work.
const (
	healthWithin = 10 * time.Second // where a server that is not harmed takes no time
	memoryWithin = 4 << 30
	patience     = 10 * time.Minute // after which a test that waits has failed
)

// TestEndurance runs a server as a process, and has it killed and stopped while
// clients submit analyses, ask the dearest questions and leave, send garbage,
// and stand still. Then it says what was tried, and checks what must have held:
// the server answers /health all the time, within its memory, and every
// analysis that was accepted is answered.
func TestEndurance(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED: it takes a while; make nightly does it")
	}
	length := 15 * time.Second
	if text := os.Getenv(enduranceVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", enduranceVariable, err)
		}
		length /= 3
	}
	v := &victim{t: t, data: t.TempDir(), listen: "127.0.0.1:0", tried: make(map[string]int), accepted: make(map[string]bool)}
	v.idle = httptest.NewServer(http.NotFoundHandler())
	defer v.idle.Close()
	v.start()
	defer v.kill()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var clients sync.WaitGroup
	for _, client := range []struct {
		run   func(context.Context)
		every time.Duration
		many  int
	}{
		{v.submit, 250 * time.Millisecond, 2},
		{v.askWorst, time.Second, 2},
		{v.sendGarbage, 500 * time.Millisecond, 1},
		{v.standStill, 100 * time.Millisecond, 1},
		{v.ping, 200 * time.Millisecond, 1},
		{v.harm, 4 * time.Second, 1},
	} {
		for range client.many {
			clients.Go(func() {
				for wait(ctx, client.every) {
					client.run(ctx)
				}
			})
		}
	}
	clients.Wait()
	v.settle()
	for _, what := range slices.Sorted(maps.Keys(v.tried)) {
		t.Logf("%6d × %s", v.tried[what], what)
	}
	if !t.Failed() {
		t.Logf("all this in %v: /health was answered within %v, the server took %d MiB at most, and all %d accepted analyses have an answer",
			length, v.slowest.Round(time.Millisecond), v.memory>>20, len(v.accepted))
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// victim is a server that is mistreated.
type victim struct {
	t            *testing.T
	data, listen string
	url          string
	idle         *httptest.Server // that is not harmed

	harmed  sync.RWMutex // held while it is stopped or dead
	process *exec.Cmd
	memory  int64 // the most that one process of it took

	mu       sync.Mutex
	tried    map[string]int
	accepted map[string]bool // ids
	slowest  time.Duration   // that /health took
	still    []net.Conn
}

func (v *victim) note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tried[fmt.Sprintf(format, args...)]++
}

// start starts the server, the next time at the same address.
func (v *victim) start() {
	v.process = exec.Command("memorymark", "serve", "--json", "--listen", v.listen, "--data", v.data, "--no-measuring", "--log-level", "error")
	v.process.Stderr = os.Stderr
	out, err := v.process.StdoutPipe()
	if err == nil {
		err = v.process.Start()
	}
	var said serving
	if err == nil {
		err = json.NewDecoder(out).Decode(&said)
	}
	if err != nil {
		v.t.Errorf("the server does not start: %v", err)
		return
	}
	if v.url == "" { // it keeps its port, and clients read this all the time
		v.url, v.listen = said.URL, strings.TrimPrefix(said.URL, "http://")
	}
}

// kill kills the server, after a look at its memory.
func (v *victim) kill() {
	v.look()
	_ = v.process.Process.Kill()
	_ = v.process.Wait()
}

// look notes the most memory that the process has taken (proc_pid_status(5)).
func (v *victim) look() {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", v.process.Process.Pid))
	if err != nil {
		return
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		var kib int64
		if _, err := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kib); err == nil {
			v.memory = max(v.memory, kib<<10)
		}
	}
}

// harm kills the server or stops it for a while.
func (v *victim) harm(ctx context.Context) {
	v.harmed.Lock()
	defer v.harmed.Unlock()
	if rand.IntN(2) == 0 {
		v.kill()
		v.start()
		v.note("the server was killed and started again")
		return
	}
	_ = v.process.Process.Signal(syscall.SIGSTOP)
	wait(ctx, time.Duration(rand.IntN(2000))*time.Millisecond)
	_ = v.process.Process.Signal(syscall.SIGCONT)
	v.note("the server was stopped for a while")
}

// post sends a body and returns the answer, nil if none came.
func (v *victim) post(ctx context.Context, path, kind string, body io.Reader) (int, []byte) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url+path, body)
	if err != nil {
		v.t.Error(err)
		return 0, nil
	}
	r.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil
	}
	return answer.StatusCode, data
}

// submit submits an analysis, and notes it if it was accepted.
func (v *victim) submit(ctx context.Context) {
	body := fmt.Sprintf(`{"engine":"predicted","workload":{"gpu":"t4","batch":%d,"sequence":64,"config":{"model_type":"gpt2","n_layer":1,"n_embd":64,"n_head":2}}}`, 1+rand.IntN(1<<16))
	status, data := v.post(ctx, "/v1/analyses", "application/json", strings.NewReader(body))
	var a struct{ ID string }
	if status != http.StatusAccepted || json.Unmarshal(data, &a) != nil {
		v.note("an analysis was submitted and not accepted")
		return
	}
	v.mu.Lock()
	v.accepted[a.ID] = true
	v.mu.Unlock()
	v.note("an analysis was submitted and accepted")
}

// worst are questions at the edges of what can be asked.
var worst = []string{
	`{"gpu":"h200","batch":8,"sequence":512,"accumulate":1024,"config":{"model_type":"llama","num_hidden_layers":1000,"hidden_size":64,"num_attention_heads":2,"num_key_value_heads":2,"intermediate_size":64,"vocab_size":100}}`,
	`{"gpu":"h200","model":"gpt2","batch":1048576,"loop":"trainer","optimizer_impl":"loop","accumulate":1024}`,
	`{"gpu":"t4","model":"bert","parallel":{"kind":"ddp","gpus":1048576},"lengths":{"64":1000000,"512":1}}`,
}

// askWorst asks one of them, and may leave before the answer.
func (v *victim) askWorst(ctx context.Context) {
	question, stays := worst[rand.IntN(len(worst))], time.Duration(1+rand.IntN(20))*time.Second
	routes := []string{"/v1/predictions", "/v1/predictions/curve", "/v1/predictions/analysis", "/v1/comparisons/cards"}
	route := routes[rand.IntN(len(routes))]
	if route != "/v1/predictions" {
		question = `{"workload":` + question + `}`
	}
	ctx, leave := context.WithTimeout(ctx, stays)
	defer leave()
	switch status, _ := v.post(ctx, route, "application/json", strings.NewReader(question)); {
	case status == 0 && ctx.Err() != nil:
		v.note("a dear question was asked, and nobody waited for the answer")
	case status == 0:
		v.note("a dear question was asked of a server that was killed")
	case status == http.StatusInternalServerError:
		v.t.Errorf("%s is answered with %d: %s", route, status, question)
	default:
		v.note("a dear question was answered with %d", status)
	}
}

// sendGarbage uploads something that is not a snapshot, or only its beginning.
func (v *victim) sendGarbage(ctx context.Context) {
	garbage := make([]byte, rand.IntN(1<<16))
	for i := range garbage {
		garbage[i] = byte(rand.Uint32())
	}
	copy(garbage, []byte{0x80, 0x04}[:min(len(garbage), 2)]) // as a pickle begins
	switch status, _ := v.post(ctx, "/v1/snapshots", "application/octet-stream", bytes.NewReader(garbage)); {
	case status >= 200 && status < 300, status == http.StatusInternalServerError:
		v.t.Errorf("garbage is answered with %d", status)
	default:
		v.note("garbage was uploaded")
	}
}

// standStill opens a connection and stops: in the middle of a header or
// of a body, or without reading the answer.
func (v *victim) standStill(context.Context) {
	c, err := net.Dial("tcp", v.listen)
	if err != nil {
		return
	}
	begin := []string{
		"GET /v1/models HTTP/1.1\r\nHost: loc", "POST /v1/snapshots HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx",
		"POST /v1/predictions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 50),
	}[rand.IntN(4)]
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(c, begin) // it may be dead
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.still = append(v.still, c); len(v.still) > 200 {
		_ = v.still[0].Close()
		v.still = v.still[1:]
	}
	v.tried["a client stood still"]++
}

// ping asks whether the server is alive, while it is not stopped. A server that
// is not harmed is asked at the same time: what it takes is the machine's fault.
func (v *victim) ping(context.Context) {
	v.harmed.RLock()
	defer v.harmed.RUnlock()
	idle := make(chan time.Duration, 1)
	go func() {
		took, err := answerTime(v.idle.URL)
		if err != nil {
			v.t.Errorf("the idle server does not answer: %v", err)
		}
		idle <- took
	}()
	took, err := answerTime(v.url + "/health")
	if slower := <-idle; err != nil || took > healthWithin+10*slower {
		v.t.Errorf("/health took %v, and an idle server %v: %v", took, slower, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.slowest = max(v.slowest, took)
	v.tried["/health was asked"]++
}

// answerTime asks by a connection of its own.
func answerTime(url string) (time.Duration, error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	began := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return time.Since(began), answer.Body.Close()
}

// settle waits until all that was accepted is answered, and looks at the memory.
func (v *victim) settle() {
	deadline := time.Now().Add(patience)
	for id := range v.accepted {
		var a struct{ State, Reason string }
		for a.State = ""; a.State != "succeeded"; time.Sleep(20 * time.Millisecond) {
			if err := json.Unmarshal([]byte(fetch(v.t, v.url+"/v1/analyses/"+id)), &a); err != nil {
				v.t.Fatal(err)
			}
			if a.State == "failed" || a.State == "cancelled" || time.Now().After(deadline) {
				v.t.Errorf("%s was accepted and is %+v", id, a)
				break
			}
		}
	}
	for _, c := range v.still {
		_ = c.Close()
	}
	if v.look(); v.memory > memoryWithin {
		v.t.Errorf("the server took %d MiB", v.memory>>20)
	}
	if len(v.accepted) == 0 {
		v.t.Error("nothing was accepted")
	}
}
