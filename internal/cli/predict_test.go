package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A prediction is one answer: the command line, a file of workloads and the API
// give the same keys with the same values, whether it fits or not.
func TestPredictionIsTheSameEverywhere(t *testing.T) {
	url := serve(t, "--no-measuring")
	for name, limit := range map[string]string{"fits": "20", "does not fit": "1"} {
		w := `{"id":"mine","model":"bert","config":{"num_hidden_layers":2},"batch":32,"limit_gib":` + limit + `}`
		one := output(t, "", "predict", "bert", "--id", "mine", "--config", `{"num_hidden_layers":2}`, "--batch", "32", "--limit-gib", limit, "--json")
		many := output(t, w, "predict", "-f", "-")
		api := decoded(t, string(send(t, url+"/v1/predictions", "application/json", w)))
		if fits := one["fits"] == true; fits != (limit == "20") || fits != (one["out_of_memory"] == nil) {
			t.Errorf("%s: fits is %v, out_of_memory %v", name, one["fits"], one["out_of_memory"])
		}
		if diff := cmp.Diff(one, many); diff != "" {
			t.Errorf("%s: --json and -f differ (-one +many):\n%s", name, diff)
		}
		if diff := cmp.Diff(one, api); diff != "" {
			t.Errorf("%s: the command line and the API differ (-line +API):\n%s", name, diff)
		}
	}
}

// output runs a command and returns the JSON object that it writes.
func output(t *testing.T, stdin string, args ...string) map[string]any {
	t.Helper()
	var stdout strings.Builder
	Run(context.Background(), args, strings.NewReader(stdin), &stdout, io.Discard)
	return decoded(t, stdout.String())
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}
