package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/job"
)

// work does that many jobs from predictions, and says something about each.
func (c *client) work(jobs int) {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	q := c.s.opts.Jobs
	m, err := q.Join(ctx, "", job.Announcement{Cards: []job.Card{{ID: "cpu"}}})
	if err != nil {
		c.t.Fatal(err)
	}
	done := make(chan struct{})
	c.t.Cleanup(func() {
		stop()
		<-done
	})
	go func() {
		defer close(done)
		for jobs > 0 && ctx.Err() == nil {
			j, err := q.Take(ctx, m.ID, "cpu", patience)
			if err != nil || j == nil {
				continue
			}
			jobs--
			if err := predictJob(context.Background(), q, m.ID, j); err != nil {
				c.t.Error(err)
			}
		}
	}()
}

func predictJob(ctx context.Context, q *job.Queue, worker string, j *job.Job) error {
	order, err := engine.ParseOrder(j.Payload)
	if err != nil {
		return err
	}
	var said []json.RawMessage
	for _, text := range []string{"one", "two", "three"} {
		said = append(said, json.RawMessage(`{"message":"`+text+`"}`))
	}
	if err := q.Progress(ctx, worker, job.Progress{Job: j.ID, Attempt: j.Attempt, Events: said}); err != nil {
		return err
	}
	r, err := order.Request()
	if err != nil {
		return err
	}
	end := job.Ending{Job: j.ID, Attempt: j.Attempt, To: job.Succeeded}
	a, err := analysis.Predict(r)
	if err != nil {
		end.To, end.Reason = job.Failed, err.Error()
	} else if end.Result, err = json.Marshal(a); err != nil {
		return err
	}
	return q.End(ctx, worker, end)
}

const small = `{"model":"resnet-18","gpu":"t4","config":{"depths":[1,1,1,1]}}`

// begin asks for an analysis.
func (c *client) begin(body string, header ...string) Analysis {
	c.t.Helper()
	r := c.post("/v1/analyses", body, header...)
	a := into[Analysis](c.t, r, http.StatusAccepted)
	if r.Header.Get("Location") != "/v1/analyses/"+a.ID {
		c.t.Errorf("Location: %s", r.Header.Get("Location"))
	}
	return a
}

// event is one of a stream.
type event struct{ id, name, data string }

// events reads a stream to its end.
func (c *client) events(path string, header ...string) []event {
	c.t.Helper()
	r := c.get(path, header...)
	if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		c.t.Fatalf("%s: %s", r.Status, r.text)
	}
	var out []event
	var e event
	for line := range strings.Lines(r.text) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e != (event{}) {
				out = append(out, e)
			}
			e = event{}
		}
	}
	return out
}

func TestAnalysis(t *testing.T) {
	c := start(t)
	c.work(1)
	a := c.begin(`{"workload":` + small + `,"changes":true}`)
	if a.Engine != evidence.Predicted || a.GPU != "t4" || a.Workload.Model != "resnet-18" {
		t.Errorf("%+v", a)
	}
	events := c.events("/v1/analyses/" + a.ID + "/events")
	last := events[len(events)-1]
	var done Analysis
	if err := json.Unmarshal([]byte(last.data), &done); err != nil || last.name != "analysis" {
		t.Fatalf("%v: %+v", err, last)
	}
	if done.State != job.Succeeded || done.Answer == nil || done.Answer.OptimalBatch == 0 || len(done.Answer.Changes) == 0 || done.Started == nil || done.Ended == nil {
		t.Errorf("%+v", done)
	}
	again := into[Analysis](t, c.get("/v1/analyses/"+a.ID), http.StatusOK)
	if again.Answer == nil || again.Answer.OptimalBatch != done.Answer.OptimalBatch {
		t.Errorf("%+v", again)
	}
	// A client that reconnects with the id of an event gets the events after it.
	said := slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.name != "progress" })
	if len(said) != 3 || !strings.Contains(said[2].data, `{"message":"three"}`) {
		t.Fatalf("%+v", said)
	}
	for _, replay := range [][]event{
		c.events("/v1/analyses/"+a.ID+"/events", "Last-Event-ID", said[1].id),
		c.events("/v1/analyses/" + a.ID + "/events?after=" + said[1].id),
	} {
		replay = slices.DeleteFunc(replay, func(e event) bool { return e.name != "progress" })
		if !slices.Equal(replay, said[2:]) {
			t.Errorf("after %s came %+v", said[1].id, replay)
		}
	}
}

// Equal questions share one run while it lasts, whatever they are called.
func TestEqualQuestions(t *testing.T) {
	c := start(t)
	first := c.begin(`{"workload":` + small + `}`)
	second := c.begin(`{"workload":{"id":"another name",` + small[1:] + `}`)
	other := c.begin(`{"workload":` + small + `,"multiple_of":8}`)
	if second.ID != first.ID || !second.Joined || first.Joined {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if other.ID == first.ID {
		t.Error("another question was taken for the same")
	}
	c.work(2)
	c.events("/v1/analyses/" + first.ID + "/events")
	if later := c.begin(`{"workload":` + small + `}`); later.ID == first.ID {
		t.Error("what has ended was joined")
	}
}

func TestCancel(t *testing.T) {
	c := start(t)
	a := c.begin(`{"workload":` + small + `,"engine":"measured"}`)
	if a.Engine != evidence.Measured || a.State != job.Queued {
		t.Errorf("%+v", a)
	}
	path := "/v1/analyses/" + a.ID
	for _, step := range []struct {
		query  string
		status int
	}{
		{"?forget=true", http.StatusConflict},
		{"", http.StatusNoContent},
		{"", http.StatusConflict},
		{"?forget=true", http.StatusNoContent},
		{"?forget=true", http.StatusNotFound},
		{"", http.StatusNotFound},
	} {
		r := c.do(http.MethodDelete, path+step.query, "")
		if r.StatusCode != step.status {
			t.Errorf("DELETE %s: %s: %s, want %d", step.query, r.Status, r.text, step.status)
		}
		if r.StatusCode == http.StatusNoContent && step.query == "" {
			got := into[Analysis](t, c.get(path), http.StatusOK)
			if got.State != job.Cancelled || got.Ended == nil {
				t.Errorf("%+v", got)
			}
		}
	}
	into[huma.ErrorModel](t, c.get(path), http.StatusNotFound)
	into[huma.ErrorModel](t, c.get(path+"/events"), http.StatusNotFound)
}

func TestHistory(t *testing.T) {
	c := start(t)
	var ids []string
	for i := range 5 {
		a := c.begin(fmt.Sprintf(`{"workload":{"model":"resnet-18","gpu":"t4","batch":%d,"id":"run %d"}}`, i+1, i))
		ids = append([]string{a.ID}, ids...)
		time.Sleep(2 * time.Millisecond) // ids of the same millisecond sort by chance
	}
	b := c.begin(`{"workload":{"model":"bert","gpu":"a10"},"engine":"measured"}`)
	ids = append([]string{b.ID}, ids...)
	list := func(query string) History {
		t.Helper()
		return into[History](t, c.get("/v1/analyses"+query), http.StatusOK)
	}
	idsOf := func(h History) []string {
		var out []string
		for _, a := range h.Analyses {
			out = append(out, a.ID)
		}
		return out
	}
	if all := list(""); !slices.Equal(idsOf(all), ids) || all.Total != 6 || all.Next != "" {
		t.Errorf("%+v", all)
	}
	var paged []string
	for query := "?limit=2"; query != ""; {
		page := list(query)
		paged = append(paged, idsOf(page)...)
		query = ""
		if page.Next != "" {
			query = "?limit=2&after=" + page.Next
		}
	}
	if !slices.Equal(paged, ids) {
		t.Errorf("paged %v, want %v", paged, ids)
	}
	for query, want := range map[string][]string{
		"?model=bert": ids[:1], "?gpu=t4": ids[1:], "?engine=measured&state=queued": ids[:1], "?state=running": nil,
		"?id=run+4": ids[1:2], "?q=RUN+3": ids[2:3], "?state=queued,failed": ids, "?since=2100-01-01T00:00:00Z": nil,
	} {
		if got := list(query); !slices.Equal(idsOf(got), want) || got.Analyses == nil {
			t.Errorf("%s: %v, want %v", query, idsOf(got), want)
		}
	}
	into[huma.ErrorModel](t, c.get("/v1/analyses?state=lost&limit=0"), http.StatusUnprocessableEntity)
}

// A client of POST /analyze that leaves does not take the answer from others.
func TestAnalyzeLeaving(t *testing.T) {
	c := start(t, card(t, "t4"))
	ctx, leave := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/analyze", strings.NewReader(`{"model_name":"resnet-18"}`))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error)
	go func() {
		answer, err := c.http.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		left <- err
	}()
	var waiting History
	for len(waiting.Analyses) == 0 {
		waiting = into[History](t, c.get("/v1/analyses"), http.StatusOK)
	}
	leave()
	if err := <-left; err == nil {
		t.Error("it did not wait")
	}
	joined := c.begin(`{"workload":{"model":"resnet-18"}}`)
	if joined.ID != waiting.Analyses[0].ID {
		t.Errorf("%s does not join %+v", joined.ID, waiting.Analyses[0])
	}
	c.work(1)
	events := c.events("/v1/analyses/" + joined.ID + "/events")
	if last := events[len(events)-1]; !strings.Contains(last.data, `"succeeded"`) {
		t.Errorf("%+v", last)
	}
}

// An analysis that fails says why.
func TestAnalysisFails(t *testing.T) {
	c := start(t)
	q, worker := c.s.opts.Jobs, c.announce("cpu")
	failed := make(chan error, 1)
	go func() {
		j, err := q.Take(context.Background(), worker, "cpu", patience)
		if err == nil {
			err = q.End(context.Background(), worker, job.Ending{Job: j.ID, Attempt: j.Attempt, To: job.Failed, Reason: "the driver is gone"})
		}
		failed <- err
	}()
	r := into[legacyError](t, c.post("/analyze", `{"model_name":"resnet-18"}`), http.StatusInternalServerError)
	if err := <-failed; err != nil || r.Error != "the analysis failed: the driver is gone" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Streams do not keep a server from stopping.
func TestStopEndsStreams(t *testing.T) {
	c := start(t)
	a := c.begin(`{"workload":` + small + `}`)
	r, err := http.Get(c.base + "/v1/analyses/" + a.ID + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	if !lines.Scan() || lines.Text() != "event: analysis" {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	c.s.stop()
	for lines.Scan() { // ends
	}
	if got := c.get("/ready"); got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("ready: %s", got.Status)
	}
}

func TestWorkers(t *testing.T) {
	c := start(t)
	if fleet := into[Fleet](t, c.get("/v1/workers"), http.StatusOK); fleet.Workers == nil || fleet.LeaseSeconds <= 0 {
		t.Errorf("%+v", fleet)
	}
	c.announce("t4")
	fleet := into[Fleet](t, c.get("/v1/workers"), http.StatusOK)
	if w := fleet.Workers[0]; w.Host != "lab" || len(w.Cards) != 1 || w.Cards[0].ID != "t4" {
		t.Errorf("%+v", fleet)
	}
	// Where a worker has the card, auto measures.
	if a := c.begin(`{"workload":` + small + `}`); a.Engine != evidence.Measured {
		t.Errorf("%+v", a)
	}
	if a := c.begin(`{"workload":` + small + `,"engine":"predicted"}`); a.Engine != evidence.Predicted {
		t.Errorf("%+v", a)
	}
	// What no worker can run is predicted all the same, as by the command line.
	for _, keys := range []string{`"parallel":{"kind":"ddp","gpus":2}`, `"lengths":{"64":10,"128":2}`} {
		if a := c.begin(`{"workload":{"model":"gpt2","gpu":"t4",` + keys + `}}`); a.Engine != evidence.Predicted {
			t.Errorf("%s: %+v", keys, a)
		}
	}
}

// How far predictions are off is known where both were done.
func TestAccuracyMetrics(t *testing.T) {
	c := start(t)
	a := c.begin(`{"workload":` + small + `,"engine":"measured"}`)
	q, worker := c.s.opts.Jobs, c.announce("t4")
	j, err := q.Take(t.Context(), worker, "t4", 0)
	if err != nil || j == nil {
		t.Fatalf("%v, %v", j, err)
	}
	if err := q.End(t.Context(), worker, job.Ending{Job: j.ID, Attempt: j.Attempt, To: job.Succeeded, Result: json.RawMessage(
		`{"engine":"measured","optimal_batch_size":100,"predicted":{"optimal_batch_size":98,"optimal_memory_bytes":5,"memory_error_percent":-1.5}}`)}); err != nil {
		t.Fatal(err)
	}
	c.events("/v1/analyses/" + a.ID + "/events")
	for range 2 {
		text := c.get("/metrics").text
		for _, want := range []string{
			`memorymark_prediction_batch_error{gpu="t4",model="resnet-18"} -0.02`, `memorymark_prediction_memory_error{gpu="t4",model="resnet-18"} -0.015`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
	}
}

// What is not modelled is emulated where a worker can, and else refused with
// its reason. What is modelled is emulated only if that is asked for.
func TestEmulation(t *testing.T) {
	const unmodelled = `{"config":{"model_type":"fnet","num_hidden_layers":2},"gpu":"t4"}`
	c := start(t)
	for _, body := range []string{`{"workload":` + unmodelled + `}`, `{"workload":` + unmodelled + `,"engine":"predicted"}`} {
		if r := c.post("/v1/analyses", body); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(r.text, "is not modelled") {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.text)
		}
	}
	for _, path := range []string{"/v1/predictions/analysis", "/v1/predictions/curve"} {
		if r := c.post(path, `{"workload":`+unmodelled+`,"engine":"emulated"}`); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.text)
		}
	}
	if r := c.post("/v1/analyses", `{"workload":{"config":{"model_type":"biogpt","num_hidden_layers":99999}},"engine":"emulated"}`); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
	c.announce(engine.EmulationQueue)
	for body, engine := range map[string]evidence.Engine{
		`{"workload":` + unmodelled + `}`:                evidence.Emulated,
		`{"workload":` + small + `}`:                     evidence.Predicted,
		`{"workload":` + small + `,"engine":"emulated"}`: evidence.Emulated,
	} {
		if a := c.begin(body); a.Engine != engine || a.Workload == nil {
			t.Errorf("%s: %+v", body, a)
		}
	}
}

// A list of runs has their answers if one asks for them.
func TestHistoryWithAnswers(t *testing.T) {
	c := start(t)
	c.work(1)
	id := c.begin(`{"workload": {"model": "distilbert", "gpu": "t4"}, "engine": "predicted"}`).ID
	c.events("/v1/analyses/" + id + "/events") // to its end
	for query, answered := range map[string]bool{"": false, "?answers=true": true} {
		kept := into[History](t, c.get("/v1/analyses"+query), http.StatusOK)
		if len(kept.Analyses) != 1 || kept.Analyses[0].Answer != nil != answered {
			t.Errorf("%q: %+v", query, kept.Analyses)
		}
	}
}

// That nothing trains is an answer: it says what is missing and what would help.
func TestNothingTrains(t *testing.T) {
	c := start(t)
	no := into[analysis.Answer](t, c.post("/v1/predictions/analysis", `{"workload":{"model":"llama-3.2-3b","gpu":"a10"}}`), http.StatusOK)
	if no.OptimalBatch != 0 || no.CurrentFits || no.CurrentMemory <= no.Limit || len(no.ToFit) == 0 {
		t.Errorf("got %+v", no)
	}
}

// The catalogs are most of what a first visit loads.
func TestAnswersAreCompressed(t *testing.T) {
	c := start(t)
	for _, path := range []string{"/v1/models", "/v1/gpus", "/openapi.json"} {
		r := c.do(http.MethodGet, path, "", "Accept-Encoding", "gzip")
		if r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed: %v", path, r.Header)
		}
	}
}

// A link to an analysis has a title and a picture where it is shown.
func TestPreview(t *testing.T) {
	page := fstest.MapFS{"index.html": {Data: []byte("<title>MemoryMark</title>")}}
	c := start(t, func(o *Options) { o.Page = page })
	c.work(1)
	a := c.begin(`{"workload":{"model":"resnet-18","gpu":"t4"},"engine":"predicted"}`)
	c.events("/v1/analyses/" + a.ID + "/events")
	r := c.get("/history/"+a.ID, "Accept", "text/html")
	for _, want := range []string{"ResNet-18, full fine-tuning, batch 16, fp32, 224 pixels on 1 × NVIDIA Tesla T4", `og:image" content="http://`, "/v1/analyses/" + a.ID + "/picture"} {
		if !strings.Contains(r.text, want) {
			t.Errorf("%q is not in %s", want, r.text)
		}
	}
	drawn, err := png.Decode(strings.NewReader(c.get("/v1/analyses/" + a.ID + "/picture").text))
	if err != nil || drawn.Bounds().Dx() != 1200 || drawn.Bounds().Dy() != 630 {
		t.Errorf("picture: %v", err)
	}
	if other := c.get("/history/nothing", "Accept", "text/html"); !strings.Contains(other.text, "<title>MemoryMark</title>") {
		t.Errorf("got %s", other.text)
	}
}

// The start page has its answer before its code runs, unless the server has tokens or
// the address is for the code to read.
func TestStartPage(t *testing.T) {
	page := fstest.MapFS{"index.html": {Data: []byte(`<div id="root"></div>`)}}
	c := start(t, func(o *Options) { o.Page = page })
	for address, want := range map[string]string{
		"/":                           "Full fine-tuning of BERT base at batch 16 fits on 1 ×",
		"/?model=gpt2&gpu=t4&batch=1": `<option value="gpt2" selected>`,
		"/?model=llama-3.1-8b&gpu=t4": "does not fit on 1 × NVIDIA Tesla T4: ",
		"/?model=bert&gpu=t4&lora=16&lora.targets=all-linear": `name="lora.targets" value="all-linear"`,
	} {
		if got := c.get(address, "Accept", "text/html"); !strings.Contains(got.text, want) {
			t.Errorf("%s: %q is not in %s", address, want, got.text)
		}
	}
	for _, address := range []string{"/?model=nothing", "/?batch=many", "/?parallel.gpus=8", "/?colour=red", "/plan"} {
		if got := c.get(address, "Accept", "text/html"); got.text != `<div id="root"></div>` {
			t.Errorf("%s: got %s", address, got.text)
		}
	}
}
