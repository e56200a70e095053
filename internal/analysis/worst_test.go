//go:build !race

package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// extremes are the values of keys that make a question dear, and ordinary ones.
var extremes = map[string][]string{
	"batch":               {"1", "8", "1048576"},
	"sequence":            {"1", "64", "512"},
	"precision":           {`"fp32"`, `"amp-bf16"`, `"amp-fp16"`, `"bf16"`},
	"optimizer":           {`"adamw"`, `"adafactor"`, `"rmsprop"`, `"adamw-8bit"`, `"lion"`, `"muon"`, `"none"`},
	"optimizer_impl":      {`"foreach"`, `"fused"`, `"loop"`},
	"attention":           {`"sdpa"`, `"eager"`},
	"attention_mask":      {`"none"`, `"padded"`},
	"checkpointing":       {"true", "false"},
	"clip_grad_norm":      {"true", "false"},
	"expandable_segments": {"true", "false"},
	"loss":                {`"labels"`, `"mean"`},
	"accumulate":          {"1", "3", "1024"},
	"loop":                {`"plain"`, `"trainer"`, `"lightning"`, `"accelerate"`, `{"outputs":"kept","build":"cpu"}`},
	"phase":               {`"train"`, `"backward"`, `"forward"`, `"infer"`},
	"quantize":            {`"none"`, `"nf4-double"`, `"int8"`},
	"adapter":             {`{"targets":"all-linear"}`, `{"targets":"all-linear","dora":true}`},
	"parallel":            {`{"kind":"fsdp","gpus":8}`, `{"kind":"ddp","gpus":1048576}`, `{"kind":"zero1","gpus":8}`, `{"kind":"tensor","gpus":4}`},
	"lengths":             {`[1,512,3]`, `{"64":1000000,"512":1}`},
	"packing":             {"true", "false"},
	"gpu":                 {`"t4"`, `"h200"`},
}

// layerKeys are the names that families have for how deep they are.
var layerKeys = []string{"num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers"}

// randomQuestion is a question at the edges of some keys, false if its keys do
// not go together.
func randomQuestion(r *rand.Rand) (Request, bool) {
	models := workload.Models()
	keys := map[string]json.RawMessage{"model": quoted(models[r.IntN(len(models))].ID)}
	for _, key := range slices.Sorted(maps.Keys(extremes)) {
		if values := extremes[key]; r.IntN(3) == 0 {
			keys[key] = json.RawMessage(values[r.IntN(len(values))])
		}
	}
	if r.IntN(4) > 0 {
		keys["config"] = json.RawMessage(fmt.Sprintf(`{%q: 1000}`, layerKeys[r.IntN(len(layerKeys))]))
	}
	data, err := json.Marshal(keys)
	if err != nil {
		panic(err)
	}
	w, err := workload.Parse(data)
	if err != nil {
		return Request{}, false
	}
	name := w.GPU
	if name == "" {
		name = "a10"
	}
	card, err := gpu.Find(name)
	if err != nil {
		panic(err)
	}
	q := Question{Changes: r.IntN(2) == 0, GlobalBatch: []int64{0, 1 << 40, 1<<40 - 87, 720_720}[r.IntN(4)], MultipleOf: []int64{0, 7, 1 << 20}[r.IntN(3)]}
	return Request{Workload: w, Card: card, Question: q}, true
}

func quoted(text string) json.RawMessage { return json.RawMessage(fmt.Sprintf("%q", text)) }

// littleWork is what a question of TestWorstQuestions may take, in events and
// in bytes that are made for each.
const littleWork, bytesPerEvent = 100_000, 2000

// TestWorstQuestions asks questions at the edges of all keys. With little work
// each of them ends soon, answered or with the reason; and what is made for an
// event is bounded, so that the work bounds time and memory, too.
func TestWorstQuestions(t *testing.T) {
	easy := requestOf(t, "a10", `{"model": "bert", "config": {"num_hidden_layers": 1}, "phase": "infer"}`)
	if err := askWithLittle(t, easy, 1); err != nil {
		t.Errorf("an easy question: %v", err)
	}
	if err := askWithLittle(t, requestOf(t, "a10", poison), 1); !errors.Is(err, workbudget.ErrTooMuch) {
		t.Errorf("a hard question: %v", err)
	}
	r := rand.New(rand.NewPCG(18, 1))
	asked := 0
	for tries := 0; asked < 60; tries++ {
		if tries > 20_000 {
			t.Fatalf("only %d questions can be asked", asked)
		}
		if q, ok := randomQuestion(r); ok {
			asked++
			_ = askWithLittle(t, q, asked) // either way is right: the keys decide
		}
	}
}

// askWithLittle asks for an answer or for a curve, in turns, and fails the test
// if more is made for it than its work allows.
func askWithLittle(t *testing.T, q Request, turn int) error {
	t.Helper()
	q.Work = workbudget.New(littleWork, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var err error
	if turn%2 == 0 {
		_, err = PredictCurve(q, 16)
	} else {
		_, err = Predict(q)
	}
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > littleWork*bytesPerEvent {
		text, _ := json.Marshal(q.Workload)
		t.Errorf("%d MB were made for %s", made>>20, text)
	}
	return err
}

// TestSplittingIsBounded: a global batch of any size is split by what divides it,
// not by trying every number.
func TestSplittingIsBounded(t *testing.T) {
	tried := 0
	never := func(int64, int64) bool { tried++; return false }
	for _, global := range []int64{1 << 40, 1<<40 - 87, 963_761_198_400} {
		if a := accumulate(global, 2, never); a != nil {
			t.Errorf("%d: %+v", global, a)
		}
	}
	if tried > 10_000 {
		t.Errorf("%d splits were tried", tried)
	}
}
