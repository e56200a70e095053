package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"memorymark/internal/analysis"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// What comes over HTTP is what the packages behind it say.
func TestPredictions(t *testing.T) {
	c := start(t)
	body := `{"id":"mine","model":"resnet-18","batch":8,"gpu":"t4"}`
	got := into[predict.Prediction](t, c.post("/v1/predictions", body), http.StatusOK)
	w := workloadtest.Parse(t, body)
	card := workloadtest.Card(t, "t4")
	want, err := predict.Predict(w, card, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "mine" || got.Workload.ID != "mine" || got.GPU != "t4" || !slices.Equal(got.Steps, want.Steps) || got.Breakdown != want.Breakdown ||
		!slices.Equal(got.Modules, want.Modules) || got.SamplesPerSecond <= 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	other := into[predict.Prediction](t, c.post("/v1/predictions", `{"id":"other","model":"resnet-18","batch":8,"gpu":"t4"}`), http.StatusOK)
	if other.ID != "other" || other.Breakdown != want.Breakdown {
		t.Errorf("an equal workload of another id: %+v", other)
	}

	answer := into[analysis.Answer](t, c.post("/v1/predictions/analysis", `{"workload":`+body+`,"changes":true,"global_batch":1000}`), http.StatusOK)
	if answer.Engine != "predicted" || len(answer.Changes) < 4 || answer.Accumulation == nil {
		t.Errorf("%+v", answer)
	}
	curve := into[analysis.Curve](t, c.post("/v1/predictions/curve", `{"workload":`+body+`}`), http.StatusOK)
	if curve.Largest != answer.OptimalBatch || len(curve.Points) < curvePoints {
		t.Errorf("%+v", curve)
	}
	cards := into[CardsComparison](t, c.post("/v1/comparisons/cards", `{"workload":`+body+`,"gpus":["t4","a10"]}`), http.StatusOK)
	if len(cards.Cards) != 2 || cards.Cards[0].OptimalBatch != answer.OptimalBatch {
		t.Errorf("%+v", cards)
	}
	grid := into[SettingsComparison](t, c.post("/v1/comparisons/settings",
		`{"workload":`+body+`,"precisions":["fp32"],"optimizers":["adamw"],"checkpointing":[false]}`), http.StatusOK)
	if len(grid.Settings) != 1 || grid.Settings[0].OptimalBatch != answer.OptimalBatch {
		t.Errorf("%+v", grid)
	}
	if diff := cmp.Diff([]*predict.Accuracy{answer.Accuracy, answer.Accuracy}, []*predict.Accuracy{cards.Accuracy, grid.Accuracy}); diff != "" || answer.Accuracy == nil {
		t.Errorf("the stated accuracy differs: %s", diff)
	}
}

// Every bad field is named, those of the workload and those next to it.
func TestProblems(t *testing.T) {
	c := start(t)
	for _, test := range []struct {
		path, body string
		status     int
		places     []string
	}{
		{"/v1/predictions", `{"model":"bert","batch":0,"precision":"fp8","bathc":1}`, 422, []string{"body.batch", "body.bathc", "body.precision"}},
		{"/v1/predictions", `{"model":"bert","gpu":"a11"}`, 422, []string{"body.gpu"}},
		{"/v1/predictions", `{"model":"bert","gpu":"../gpu/catalog.json"}`, 422, []string{"body.gpu"}}, // no file is read
		{"/v1/predictions", `{"model":"config.json"}`, 422, []string{"body.model"}},
		{"/v1/predictions", `{"model":"bert","config":{"hidden_size":"x","num_hidden_layers":-1,"sizes":3}}`, 422, []string{"body.config.hidden_size", "body.config.sizes"}},
		{"/v1/predictions", `{}`, 422, []string{"body.model"}},
		{"/v1/predictions", `{`, 400, []string{"body"}},
		{"/v1/predictions", ``, 400, nil},
		{
			"/v1/predictions/analysis", `{"workload":{"model":"bert","batch":-1},"engine":"guessed","multiple_of":-8,"colour":1}`, 422,
			[]string{"body.colour", "body.engine", "body.multiple_of", "body.workload.batch"},
		},
		{"/v1/predictions/analysis", `{}`, 422, []string{"body"}},
		{"/v1/comparisons/cards", `{"workload":{"model":"bert"},"gpus":["t4","a11"]}`, 422, []string{"body.gpus[1]"}},
		{"/v1/comparisons/cards", `{"workload":{"model":"bert"},"gpus":["t4","t4"]}`, 422, []string{"body.gpus[1]"}},
		{"/v1/comparisons/settings", `{"workload":{"model":"bert"},"precisions":["fp8"]}`, 422, []string{"body.precisions[0]"}},
	} {
		r := c.post(test.path, test.body)
		got := into[huma.ErrorModel](t, r, test.status)
		if r.Header.Get("Content-Type") != "application/problem+json" || got.Status != test.status || got.Detail == "" {
			t.Errorf("%s: %s %+v", test.body, r.Header.Get("Content-Type"), got)
		}
		var places []string
		for _, e := range got.Errors {
			places = append(places, e.Location)
			if e.Message == "" {
				t.Errorf("%s: %+v says nothing", test.body, e)
			}
		}
		slices.Sort(places)
		if !slices.Equal(places, test.places) {
			t.Errorf("%s: named %q, want %q: %s", test.body, places, test.places, r.text)
		}
	}
}

// What curl -d sends is refused with what to do about it.
func TestBodyOfNoType(t *testing.T) {
	c := start(t)
	r, err := c.http.Post(c.base+"/v1/predictions", "application/x-www-form-urlencoded", strings.NewReader(`{"model":"bert"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var p huma.ErrorModel
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(p.Detail, "curl --json") {
		t.Errorf("%s: %+v", r.Status, p)
	}
}

func TestCatalogs(t *testing.T) {
	c := start(t, card(t, "l4"))
	cards := into[Cards](t, c.get("/v1/gpus"), http.StatusOK)
	if len(cards.Cards) < 20 || cards.ThisMachine != "l4" || cards.Default != "l4" {
		t.Errorf("%+v", cards)
	}
	models := into[struct{ Models []workload.CatalogModel }](t, c.get("/v1/models"), http.StatusOK)
	if len(models.Models) != len(workload.Models()) {
		t.Errorf("%d models", len(models.Models))
	}
	if cards := into[Cards](t, start(t).get("/v1/gpus"), http.StatusOK); cards.ThisMachine != "" || cards.Default != gpu.Default {
		t.Errorf("without a card: %q, %q", cards.ThisMachine, cards.Default)
	}
}

// Whatever a request holds, the answer is the client's fault or an answer, and
// says so in JSON.
func FuzzRequests(f *testing.F) {
	s := newServer(f)
	for _, body := range []string{
		`{"model":"resnet-18"}`, `{"workload":{"model":"bert"},"engine":"auto"}`, `{"workload":null}`, `{`, `[]`, `"x"`, `{"model":1e999}`,
		`{"config":{"model_type":"bert","num_hidden_layers":1,"hidden_size":64,"num_attention_heads":1}}`, `{"workload":{"model":"vit"},"precisions":["fp32"]}`,
		"{\"model\":\"\xff\"}", `{"model":"bert","batch":9223372036854775807}`,
	} {
		for _, path := range []string{"/v1/predictions", "/v1/predictions/analysis"} {
			f.Add(path, body)
		}
	}
	f.Fuzz(func(t *testing.T, path, body string) {
		if !slices.Contains([]string{"/v1/predictions", "/v1/predictions/analysis"}, path) {
			path = "/v1/predictions"
		}
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
		}
	})
}

// A price of 0 is a price: of a card that one has.
func TestBill(t *testing.T) {
	c := start(t)
	ask := func(price string) *analysis.Answer {
		a := into[analysis.Answer](t, c.post("/v1/predictions/analysis", `{"workload": {"model": "gpt2", "gpu": "a10"}, "run_tokens": 1e9`+price+`}`), http.StatusOK)
		return &a
	}
	usual, free := ask(""), ask(`, "price_per_hour": 0`)
	if b := usual.Bill; b == nil || *b.PerMillionTokens <= 0 || *b.Run.Dollars <= 0 || b.Run.Tokens != 1e9 {
		t.Errorf("%+v", b)
	}
	if b := free.Bill; *free.PricePerHour != 0 || *free.Savings != 0 || *b.PerMillionTokens != 0 || *b.Run.Dollars != 0 || b.Run.Hours != usual.Bill.Run.Hours {
		t.Errorf("%+v", b)
	}
}
