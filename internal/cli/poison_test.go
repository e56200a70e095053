//go:build !race

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// poison takes hours unless it is counted: as many layers and passes as there
// may be, and every question at once.
const poison = `{"changes": true, "global_batch": 1073741824, "workload": {"sequence": 64, "accumulate": 1024, "loop": "trainer", "checkpointing": true,
	"adapter": {"targets": "all-linear"}, "config": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
	"intermediate_size": 64, "num_hidden_layers": 1000, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000}}}`

type analysisState struct {
	ID, State, Reason string
	Attempt           int
}

func ask(t *testing.T, method, url, body string) (a analysisState, status int) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &a)
	}
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return a, answer.StatusCode
}

// until waits for a state of an analysis.
func until(t *testing.T, url, id string, right func(analysisState) bool) (a analysisState) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) {
		if a, _ = ask(t, http.MethodGet, url+"/v1/analyses/"+id, ""); right(a) {
			return a
		}
	}
	t.Fatalf("it stays %+v", a)
	return a
}

// TestPoison cancels an analysis that would take hours while it runs, and lets
// another end: it fails once, with its reason, also after a restart. The server
// continues all the time.
func TestPoison(t *testing.T) {
	data := t.TempDir()
	var id string
	t.Run("cancelled and restarted", func(t *testing.T) {
		url := address(t, "serve", "--json", "--listen", "127.0.0.1:0", "--data", data, "--no-measuring")
		a, status := ask(t, http.MethodPost, url+"/v1/analyses", poison)
		if status != http.StatusAccepted {
			t.Fatal(status)
		}
		until(t, url, a.ID, func(a analysisState) bool { return a.State == "running" })
		if _, status := ask(t, http.MethodDelete, url+"/v1/analyses/"+a.ID, ""); status != http.StatusNoContent {
			t.Errorf("cancelling: %d", status)
		}
		small, status := ask(t, http.MethodPost, url+"/v1/analyses", `{"workload": {"model": "bert", "gpu": "t4"}}`)
		if status != http.StatusAccepted {
			t.Fatal(status)
		}
		until(t, url, small.ID, func(a analysisState) bool { return a.State == "succeeded" }) // its place is free
		if a = until(t, url, a.ID, func(a analysisState) bool { return a.State != "running" }); a.State != "cancelled" {
			t.Errorf("%+v", a)
		}
		again, _ := ask(t, http.MethodPost, url+"/v1/analyses", poison)
		until(t, url, again.ID, func(a analysisState) bool { return a.State == "running" })
		id = again.ID
	})
	var first analysisState
	for i := range 2 {
		t.Run(fmt.Sprintf("restart %d", i+1), func(t *testing.T) {
			url := address(t, "serve", "--json", "--listen", "127.0.0.1:0", "--data", data, "--no-measuring")
			a := until(t, url, id, func(a analysisState) bool { return a.State != "queued" && a.State != "running" })
			if a.State != "failed" || !strings.Contains(a.Reason, "too much computation") {
				t.Errorf("%+v", a)
			}
			if i == 0 {
				first = a
			} else if a != first {
				t.Errorf("it was %+v, and now is %+v", first, a)
			}
		})
	}
}
