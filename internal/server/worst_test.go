//go:build !race

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/predict"
	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
)

// What a question of at most a megabyte may take, on a machine that takes usualYardstick
// for the yardstick.
const (
	maxCPU       = 10 * time.Second
	maxMemory    = 1 << 30
	maxBodyBytes = 1 << 20
)

// drawn is how many questions TestWorstQuestions draws, the same every time; "make
// endurance" says by enduranceVariable how long it searches instead.
const (
	drawn             = 40
	enduranceVariable = "MEMORYMARK_ENDURANCE"
)

// manyNames and manyNumbers fill most of a question.
var (
	manyNames   = strings.Repeat(`"q","k",`, 60_000) + `"v"`
	manyNumbers = strings.Repeat("511,17,", 60_000) + "3"
)

// edges are values of keys that are neither choices nor switches: those that cost
// most, and ordinary ones.
var edges = map[string][]string{
	"id":         {`"mine"`},
	"model":      modelNames(),
	"config":     depths(),
	"batch":      {"1", "8", "1048576"},
	"sequence":   {"1", "64", "2048"},
	"lengths":    {"[1,512,3]", "[" + manyNumbers + "]", `{"64":1000000,"512":1}`},
	"image":      {"32", "224"},
	"accumulate": {"1", "3", "1024"},
	"adapter": {
		`{"targets":"all-linear"}`, `{"targets":"all-linear","dora":true}`, `{"targets":[` + manyNames + `]}`,
		`{"targets":"all-linear","modules_to_save":[` + manyNames + `]}`,
	},
	"parallel": {
		`{"kind":"ddp","gpus":1048576}`, `{"kind":"fsdp","gpus":8}`, `{"kind":"hsdp","gpus":8,"shard":4}`, `{"kind":"zero1","gpus":8}`,
		`{"kind":"tp","gpus":2}`, `{"kind":"fsdp+tp","gpus":8,"tensor":2}`,
	},
	"versions":  {`{"torch":"2.4"}`, `{"torch":"2.8"}`},
	"gpu":       {`"t4"`, `"h200"`},
	"limit_gib": {"0.001", "16", "1000"},
}

func modelNames() (names []string) {
	for _, m := range workload.Models() {
		names = append(names, strconv.Quote(m.ID))
	}
	return names
}

// depths are models as deep as can be, by the names that families have for it.
func depths() (configs []string) {
	for _, key := range []string{"num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers", "num_decoder_layers"} {
		for _, layers := range []int{1, 100, 1000} {
			configs = append(configs, fmt.Sprintf("{%q:%d}", key, layers))
		}
	}
	return append(configs, `{"num_hidden_layers":1000,"mlp_only_layers":[`+manyNumbers+`]}`)
}

// valuesOf are the values that a key is tried with.
func valuesOf(t *testing.T, key workload.Key) (values []string) {
	t.Helper()
	switch key.Kind {
	case workload.Choice:
		for _, v := range key.Values {
			values = append(values, strconv.Quote(v.Name))
		}
		return values
	case workload.Switch:
		return []string{"true", "false"}
	default:
		if values = edges[key.Name]; values == nil {
			t.Fatalf("the key %s is not searched; say which of its values cost most", key.Name)
		}
		return values
	}
}

// byWorker stands for the route of an analysis, with the worker that takes it.
const byWorker = "/v1/analyses"

// hardRoutes are those that compute, and what is asked around the workload.
var hardRoutes = []struct{ path, before, after string }{
	{"/v1/predictions", "", ""},
	{"/v1/predictions/snapshot", "", ""},
	{"/v1/activations", "", ""},
	{"/v1/predictions/curve", `{"workload":`, "}"},
	{"/v1/predictions/analysis", `{"changes":true,"global_batch":720720,"workload":`, "}"},
	{"/v1/comparisons/cards", `{"workload":`, "}"},
	{"/v1/comparisons/settings", `{"workload":`, "}"},
	{"/v1/sweeps", `{"axes":[{"key":"limit_gib","values":[1` + manyLimits() + `]}],"workload":`, "}"},
	{"/v1/fits", `{"workload":`, "}"},
	{"/v1/plans", `{"max_gpus":512,"global_batch":65536,"workload":`, "}"},
	{"/v1/plans", `{"workload":`, "}"},
	{byWorker, "", ""},
}

func manyLimits() (text string) {
	for n := 2; n <= maxSweepCells; n++ {
		text += "," + strconv.Itoa(n)
	}
	return text
}

// hardQuestion is a workload, and where it is sent.
type hardQuestion struct {
	route int
	keys  workload.Draft
}

func (q hardQuestion) String() string {
	return fmt.Sprintf("%s %.1000s", hardRoutes[q.route].path, q.workload())
}

func (q hardQuestion) workload() string {
	data, err := json.Marshal(q.keys)
	if err != nil {
		panic(err) // it is made of JSON
	}
	return string(data)
}

func (q hardQuestion) body() string {
	return hardRoutes[q.route].before + q.workload() + hardRoutes[q.route].after
}

// changed is a question with another value of a key, or sent elsewhere. Values
// that the others do not go with are left out again.
func (q hardQuestion) changed(t *testing.T, r *rand.Rand) hardQuestion {
	t.Helper()
	if r.IntN(4) == 0 {
		return hardQuestion{r.IntN(len(hardRoutes)), q.keys}
	}
	known := workload.Keys()
	key := known[r.IntN(len(known))]
	values, keys := valuesOf(t, key), maps.Clone(q.keys)
	keys[key.Name] = json.RawMessage(values[r.IntN(len(values))])
	if _, err := keys.Workload(); err != nil {
		return q
	}
	if next := (hardQuestion{q.route, keys}); len(next.body()) <= maxBodyBytes {
		return next
	}
	return q
}

// randomQuestion is a question with some values of some keys.
func randomQuestion(t *testing.T, r *rand.Rand) hardQuestion {
	t.Helper()
	names := modelNames()
	q := hardQuestion{r.IntN(len(hardRoutes)), workload.Draft{"model": json.RawMessage(names[r.IntN(len(names))])}}
	for range 20 {
		q = q.changed(t, r)
	}
	return q
}

// knownQuestions took too much, each for a reason of its own.
func knownQuestions() (questions []hardQuestion) {
	for _, known := range [][2]string{
		{"/v1/predictions/analysis", `{"model":"modernbert-base","config":{"num_hidden_layers":1000}}`},
		{"/v1/comparisons/cards", `{"model":"whisper-tiny","config":{"encoder_layers":1000},"adapter":{"targets":"all-linear","dora":true}}`},
		{"/v1/plans", `{"model":"xlm-roberta-large","config":{"num_hidden_layers":1000},"expandable_segments":true,"lengths":[1,512,3],"precision":"bf16"}`},
		{"/v1/predictions", `{"model":"bert","config":{"num_hidden_layers":1},"phase":"infer","accumulate":1024,"batch":1048576,"sequence":512,"lengths":[1,512,3]}`},
		{"/v1/predictions", `{"accumulate":3,"adapter":{"targets":"all-linear","dora":true},"config":{"encoder_layers":1000},"model":"whisper-tiny"}`},
		{"/v1/sweeps", `{"model":"bert","lengths":[` + manyNumbers + `]}`},
		{"/v1/sweeps", `{"model":"bert","config":{"num_hidden_layers":1},"accumulate":1024}`},
		{"/v1/predictions", `{"model":"llama-3.2-1b","config":{"num_hidden_layers":1000},"adapter":{"targets":"all-linear","modules_to_save":[` + manyNames + `]}}`},
	} {
		route := slices.IndexFunc(hardRoutes, func(r struct{ path, before, after string }) bool { return r.path == known[0] })
		keys, err := workload.ParseDraft([]byte(known[1]))
		if err != nil || route < 0 {
			panic(fmt.Sprint(known[0], err))
		}
		questions = append(questions, hardQuestion{route, keys})
	}
	return questions
}

// TestWorstQuestions asks for what took most until now and for what is drawn from all
// keys and all routes that compute, with the limits of a real server. Told how long, it
// searches for the question that takes most: what took much is changed further. No
// question takes more than 10 s of processor time or 1 GiB, and none finds a fault.
// What seems to take more is asked once more: what else the machine does only adds to
// it.
func TestWorstQuestions(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED: it takes minutes; make nightly asks")
	}
	goOn, searches := func(asked int, _ time.Duration) bool { return asked < drawn }, false
	seed := uint64(18)
	if text := os.Getenv(enduranceVariable); text != "" {
		most, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", enduranceVariable, err)
		}
		goOn, searches = func(_ int, took time.Duration) bool { return took < most }, true
		seed = rand.Uint64()
	}
	s := newServer(t)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxMemory)) // garbage does not count, if it can be collected in time
	r := rand.New(rand.NewPCG(seed, 1))
	for _, key := range workload.Keys() {
		valuesOf(t, key) // none is left out
	}
	codes, worst := make(map[int]int), taken{}
	var question hardQuestion // which took that
	ask := func(next hardQuestion) {
		took := take(t, s, next)
		if took.share > 1 {
			took = take(t, newServer(t), next) // which remembers no answer
		}
		codes[took.code]++
		if took.share > worst.share {
			worst, question = took, next
		}
		if took.share > 1 || took.code >= http.StatusInternalServerError {
			t.Errorf("%d after %v and %d MB (seed %d): %v", took.code, took.cpu, took.memory>>20, seed, next)
		}
	}
	for _, known := range knownQuestions() {
		ask(known)
	}
	begin := time.Now()
	for asked := 0; goOn(asked, time.Since(begin)); asked++ {
		if searches && r.IntN(2) == 0 {
			ask(question.changed(t, r))
		} else {
			ask(randomQuestion(t, r))
		}
	}
	asked := 0
	for _, n := range codes {
		asked += n
	}
	t.Logf("%d questions were asked (by status: %v). The worst took %v of processor time and %d MB, %.0f %% of its limit: %v",
		asked, codes, worst.cpu.Round(time.Millisecond), worst.memory>>20, 100*worst.share, question)
	if codes[http.StatusOK] == 0 || codes[http.StatusUnprocessableEntity] == 0 {
		t.Errorf("answers %v: some questions should be answered, and some refused", codes)
	}
}

// TestLargePlan: what bounds a plan leaves enough for the models that people ask about.
func TestLargePlan(t *testing.T) {
	route := slices.IndexFunc(hardRoutes, func(r struct{ path, before, after string }) bool {
		return r.path == "/v1/plans" && r.before == `{"workload":`
	})
	keys, err := workload.ParseDraft([]byte(`{"model":"llama-3.1-8b","sequence":2048}`))
	if err != nil {
		t.Fatal(err)
	}
	took := take(t, newServer(t), hardQuestion{route, keys})
	if took.code != http.StatusOK || took.share > 1 {
		t.Errorf("%d after %v and %d MB", took.code, took.cpu, took.memory>>20)
	}
	t.Logf("a plan of Llama 3.1 8B took %v of processor time and %d MB, %.0f %% of its limit", took.cpu.Round(time.Millisecond), took.memory>>20, 100*took.share)
}

// taken is what a question took.
type taken struct {
	code   int
	cpu    time.Duration
	memory uint64
	share  float64 // of what it may take
}

// take asks a server that has nothing else to do.
func take(t *testing.T, s *Server, q hardQuestion) (took taken) {
	t.Helper()
	runtime.GC() // so that the garbage of others does not count
	yardstick := yardstickTime(t)
	begin, memory := testmachine.ProcessorTime(t), watchMemory()
	if hardRoutes[q.route].path == byWorker {
		took.code = work(t, q)
	} else {
		answer := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, hardRoutes[q.route].path, strings.NewReader(q.body()))
		request.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(answer, request)
		if took.code = answer.Code; strings.Contains(answer.Body.String(), predict.ErrFault.Error()) {
			took.code = http.StatusInternalServerError // in a row
		}
	}
	took.cpu, took.memory = testmachine.ProcessorTime(t)-begin, memory()
	slower := max(1, float64(yardstick)/float64(usualYardstick))
	took.share = max(float64(took.cpu)/(float64(maxCPU)*slower), float64(took.memory)/maxMemory)
	return took
}

// usualYardstick is what yardstickTime is on an idle machine of two cores.
const usualYardstick = 130 * time.Millisecond

// yardstickTime is the processor time of work that is alike everywhere, and as a
// simulation is: it makes many small values and leaves them to the collector. Machines
// differ in speed, and one that does other things as well is slower for it.
func yardstickTime(t *testing.T) time.Duration {
	t.Helper()
	numbers := []byte("[" + strings.Repeat(`{"size":[1,2,3],"name":"a"},`, 5_000) + "{}]")
	begin := testmachine.ProcessorTime(t)
	for range 25 {
		var into any
		if err := json.Unmarshal(numbers, &into); err != nil {
			t.Fatal(err)
		}
	}
	return testmachine.ProcessorTime(t) - begin
}

// work does what a worker does with an analysis, and says what a server would.
func work(t *testing.T, q hardQuestion) (code int) {
	t.Helper()
	w, err := q.keys.Workload()
	if err != nil {
		return http.StatusUnprocessableEntity
	}
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(engine.Order{Engine: evidence.Predicted, Workload: data, GPU: "a10", Question: analysis.Question{Changes: true}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = engine.NewRunner(engine.RunnerOptions{}).RunOrder(t.Context(), order, func(json.RawMessage) {})
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, predict.ErrFault):
		return http.StatusInternalServerError
	default:
		return http.StatusUnprocessableEntity
	}
}

// watchMemory returns a function that says by how much the heap grew at most, with
// what was not collected yet.
func watchMemory() func() uint64 {
	heap := func() uint64 {
		sample := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		runtimemetrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before, stop, most := heap(), make(chan struct{}), make(chan uint64)
	go func() {
		largest := before
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				largest = max(largest, heap())
			case <-stop:
				most <- largest - before
				return
			}
		}
	}()
	return func() uint64 { close(stop); return <-most }
}
