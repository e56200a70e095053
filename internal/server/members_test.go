package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/job"
	"memorymark/internal/token"
)

// rack is a worker of a server that asks for tokens, by plain HTTP.
type rack struct {
	*client
	token string
	id    string
}

func (r *rack) post(path, body string) reply {
	r.t.Helper()
	return r.client.post("/v1/workers"+path, body, "Authorization", "Bearer "+r.token)
}

// newRack joins with a token of its own.
func newRack(t *testing.T, c *client, name string) *rack {
	t.Helper()
	list, err := token.Open(c.tokens)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := list.Create(name, token.Worker, time.Now(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rack{client: c, token: secret}
	m := into[job.Membership](t, r.post("", `{"host":"rack-1","cards":[{"id":"t4","name":"Tesla T4"}]}`), http.StatusCreated)
	if r.id = m.ID; m.LeaseSeconds != job.DefaultLease.Seconds() {
		t.Errorf("%+v", m)
	}
	return r
}

// submit asks for a job that only workers do.
func (r *rack) submit(payload string) *job.Job {
	r.t.Helper()
	j, _, err := r.s.opts.Jobs.Submit(r.t.Context(), job.Request{Card: "t4", Payload: json.RawMessage(payload)})
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

// lease takes a job.
func (r *rack) lease() Lease {
	r.t.Helper()
	return into[Lease](r.t, r.post("/"+r.id+"/lease", `{"card":"t4","wait_seconds":60}`), http.StatusOK)
}

// A worker's life, as docs/workers.md has it for curl.
func TestWorkerByHTTP(t *testing.T) {
	c, user, _ := guarded(t)
	r := newRack(t, c, "rack")
	if got := r.post("/"+r.id+"/lease", `{"card":"t4"}`); got.StatusCode != http.StatusNoContent || got.text != "" {
		t.Errorf("without a job: %s %s", got.Status, got.text)
	}
	j := r.submit(`{"n":1}`)
	l := r.lease()
	if l.Job != j.ID || l.Attempt != 1 || l.Card != "t4" || string(l.Payload) != `{"n":1}` {
		t.Errorf("leased %+v", l)
	}
	working := fmt.Sprintf(`{"host":"rack-1","cards":[{"id":"t4","job":%q,"attempt":1}]}`, l.Job)
	if o := into[job.Orders](t, r.post("/"+r.id+"/heartbeat", working), http.StatusOK); len(o.Stop) != 0 || o.Drain != nil {
		t.Errorf("told %+v", o)
	}
	fleet := into[Fleet](t, c.get("/v1/workers", "Authorization", "Bearer "+user), http.StatusOK)
	if len(fleet.Workers) != 1 || fleet.Workers[0].Host != "rack-1" || fleet.Workers[0].Cards[0].Job != j.ID || fleet.Workers[0].Jobs[0] != j.ID {
		t.Errorf("%+v", fleet)
	}
	at := "/" + r.id + "/jobs/" + l.Job
	for range 2 { // whoever got no answer sends it again
		if got := r.post(at+"/events", `{"attempt":1,"first":0,"events":[{"message":"one"},{"message":"two"}]}`); got.StatusCode != http.StatusNoContent {
			t.Errorf("events: %s %s", got.Status, got.text)
		}
	}
	page, err := c.s.opts.Jobs.Events(t.Context(), j.ID, 0, 10)
	if err != nil || len(page.Events) != 2 || string(page.Events[1].Data) != `{"message":"two"}` {
		t.Errorf("%+v, %v", page, err)
	}
	for range 2 {
		if got := r.post(at+"/result", `{"attempt":1,"result":{"found":3}}`); got.StatusCode != http.StatusNoContent {
			t.Errorf("result: %s %s", got.Status, got.text)
		}
	}
	if result, err := c.s.opts.Jobs.Result(t.Context(), j.ID); err != nil || string(result) != `{"found":3}` {
		t.Errorf("%s, %v", result, err)
	}
	for what, body := range map[string]string{"result": `{"attempt":1,"result":4}`, "release": `{"attempt":1}`, "events": `{"attempt":1,"events":[1]}`} {
		if got := r.post(at+"/"+what, body); what != "result" && got.StatusCode != http.StatusConflict {
			t.Errorf("%s after the end: %s %s", what, got.Status, got.text)
		}
	}
	if result, _ := c.s.opts.Jobs.Result(t.Context(), j.ID); string(result) != `{"found":3}` {
		t.Errorf("the result became %s", result)
	}

	again := r.submit(`{"n":2}`)
	l = r.lease()
	if got := r.post("/"+r.id+"/jobs/"+l.Job+"/release", `{"attempt":1,"reason":"the rack is moved"}`); got.StatusCode != http.StatusNoContent {
		t.Errorf("release: %s %s", got.Status, got.text)
	}
	if l = r.lease(); l.Job != again.ID || l.Attempt != 2 {
		t.Errorf("leased %+v", l)
	}
	if got := r.post("/"+r.id+"/jobs/"+l.Job+"/result", `{"attempt":2,"error":"it does not fit"}`); got.StatusCode != http.StatusNoContent {
		t.Errorf("error: %s %s", got.Status, got.text)
	}
	if j, err := c.s.opts.Jobs.Get(t.Context(), again.ID); err != nil || j.State != job.Failed || j.Reason != "it does not fit" {
		t.Errorf("%+v, %v", j, err)
	}
	if got := c.do(http.MethodDelete, "/v1/workers/"+r.id, "", "Authorization", "Bearer "+r.token); got.StatusCode != http.StatusNoContent || len(c.s.opts.Jobs.Workers()) != 0 {
		t.Errorf("leaving: %s %s", got.Status, got.text)
	}
	if got := r.post("/"+r.id+"/lease", `{"card":"t4"}`); got.StatusCode != http.StatusNotFound {
		t.Errorf("a lease for one that left: %s", got.Status)
	}
}

// The same with curl, as far as docs/workers.md shows it.
func TestWorkerByCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("NOT TESTED: this machine has no curl")
	}
	c := start(t)
	q := c.s.opts.Jobs
	j, _, err := q.Submit(t.Context(), job.Request{Card: "a10", Payload: json.RawMessage(`{"n":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path, body string, into any) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), curl, "--silent", "--show-error", "--fail-with-body", "--json", body, c.base+"/v1/workers"+path).CombinedOutput()
		if err == nil && into != nil {
			err = json.Unmarshal(out, into)
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", path, err, out)
		}
	}
	var m job.Membership
	ask("", `{"host":"rack-1","cards":[{"id":"a10"}]}`, &m)
	var l Lease
	ask("/"+m.ID+"/lease", `{"card":"a10","wait_seconds":20}`, &l)
	ask("/"+m.ID+"/heartbeat", fmt.Sprintf(`{"host":"rack-1","cards":[{"id":"a10","job":%q,"attempt":%d}]}`, l.Job, l.Attempt), &job.Orders{})
	ask("/"+m.ID+"/jobs/"+l.Job+"/events", `{"attempt":1,"first":0,"events":[{"message":"warming up"}]}`, nil)
	ask("/"+m.ID+"/jobs/"+l.Job+"/result", `{"attempt":1,"result":{"optimal_batch_size":64}}`, nil)
	if result, err := q.Result(t.Context(), j.ID); err != nil || string(result) != `{"optimal_batch_size":64}` {
		t.Errorf("%s, %v", result, err)
	}
}

// A heartbeat that waits tells of a cancelled job at once.
func TestCancelReachesWorkers(t *testing.T) {
	c, _, _ := guarded(t)
	r := newRack(t, c, "rack")
	j := r.submit(`1`)
	l := r.lease()
	var told job.Orders
	var at time.Time
	var beat sync.WaitGroup
	beat.Go(func() {
		body := fmt.Sprintf(`{"cards":[{"id":"t4","job":%q,"attempt":1}],"wait_seconds":60}`, l.Job)
		told = into[job.Orders](t, r.post("/"+r.id+"/heartbeat", body), http.StatusOK)
		at = time.Now()
	})
	for len(c.s.opts.Jobs.Workers()[0].Jobs) == 0 { // it waits
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	if _, err := c.s.opts.Jobs.Cancel(t.Context(), j.ID, "not needed"); err != nil {
		t.Fatal(err)
	}
	beat.Wait()
	if took := at.Sub(began); len(told.Stop) != 1 || told.Stop[0] != (job.Stop{Job: j.ID, Attempt: 1, Cancelled: true}) || took > time.Second {
		t.Errorf("after %v it is told %+v", took, told)
	}
	if got := r.post("/"+r.id+"/jobs/"+l.Job+"/result", `{"attempt":1,"result":1}`); got.StatusCode != http.StatusConflict || !strings.Contains(got.text, "cancelled") {
		t.Errorf("a result: %s %s", got.Status, got.text)
	}
}

// TestWorkersSpeakForThemselves has the worker of one token try what is another's.
func TestWorkersSpeakForThemselves(t *testing.T) {
	c, _, _ := guarded(t)
	honest, other := newRack(t, c, "honest"), newRack(t, c, "other")
	j := honest.submit(`1`)
	l := honest.lease()
	other.token, honest.token = honest.token, other.token
	for path, body := range map[string]string{
		"/heartbeat": `{"cards":[]}`, "/lease": `{"card":"t4"}`,
		"/jobs/" + l.Job + "/events": `{"attempt":1,"events":[1]}`, "/jobs/" + l.Job + "/result": `{"attempt":1,"result":2}`, "/jobs/" + l.Job + "/release": `{"attempt":1}`,
	} {
		if got := honest.post("/"+honest.id+path, body); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s of another: %s %s", path, got.Status, got.text)
		}
	}
	if got := c.do(http.MethodDelete, "/v1/workers/"+honest.id, "", "Authorization", "Bearer "+honest.token); got.StatusCode != http.StatusForbidden {
		t.Errorf("leaving for another: %s", got.Status)
	}
	other.token, honest.token = honest.token, other.token
	for what, body := range map[string]string{
		"events": `{"attempt":1,"events":[1]}`, "result": `{"attempt":1,"result":2}`, "release": `{"attempt":1}`,
	} {
		if got := other.post("/"+other.id+"/jobs/"+l.Job+"/"+what, body); got.StatusCode != http.StatusConflict {
			t.Errorf("%s of another's job: %s %s", what, got.Status, got.text)
		}
		if got := other.post("/"+other.id+"/jobs/*/"+what, body); got.StatusCode != http.StatusConflict {
			t.Errorf("%s of any job: %s %s", what, got.Status, got.text)
		}
	}
	for _, card := range []string{"a10", "any", "*", ">"} {
		if got := other.post("/"+other.id+"/lease", fmt.Sprintf(`{"card":%q}`, card)); got.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a job for %s, which it does not have: %s %s", card, got.Status, got.text)
		}
	}
	if now, err := c.s.opts.Jobs.Get(t.Context(), j.ID); err != nil || now.State != job.Running || now.Worker != honest.id {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestWorkersAreBounded has the holder of a worker's token announce far more than a
// worker has, and more workers than there are. Each is refused with the reason, and
// everything else continues.
func TestWorkersAreBounded(t *testing.T) {
	c, user, worker := guarded(t)
	r := &rack{client: c, token: worker}
	var cards []string
	for i := range 3000 {
		cards = append(cards, fmt.Sprintf(`{"id":"card-%d"}`, i))
	}
	many := func(n int) string { return `{"cards":[` + strings.Join(cards[:n], ",") + `]}` }
	for what, c := range map[string]struct {
		body   string
		status int
		reason string
	}{
		"3,000 cards": {many(3000), http.StatusRequestEntityTooLarge, "too large"},
		"300 cards":   {many(300), http.StatusUnprocessableEntity, "300; 64 are allowed"},
		"a long name": {`{"cards":[{"id":"t4","name":"` + strings.Repeat("x", 9000) + `"}]}`, http.StatusUnprocessableEntity, "256 bytes"},
		"not a card":  {`{"cards":[{"id":"T4.>"}]}`, http.StatusUnprocessableEntity, "lower-case"},
		"not JSON":    {`{"cards":`, http.StatusUnprocessableEntity, ""},
		"no object":   {`[]`, http.StatusUnprocessableEntity, ""},
	} {
		got := into[huma.ErrorModel](t, r.post("", c.body), c.status)
		if !strings.Contains(got.Detail, c.reason) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	fat := `{"cards":[{"id":"t4","name":"` + strings.Repeat("x", 5_900_000) + `"}]}`
	for range 240 {
		into[huma.ErrorModel](t, r.post("", fat), http.StatusRequestEntityTooLarge)
	}
	runtime.GC()
	if runtime.ReadMemStats(&after); after.HeapInuse > before.HeapInuse+64<<20 {
		t.Errorf("the server takes %d MiB more", (after.HeapInuse-before.HeapInuse)>>20)
	}
	refused := 0
	for range 300 {
		switch got := r.post("", `{"cards":[{"id":"t4"}]}`); {
		case got.StatusCode == http.StatusTooManyRequests && strings.Contains(got.text, "256 workers have joined with this token"):
			refused++
		case got.StatusCode != http.StatusCreated:
			t.Fatalf("%s %s", got.Status, got.text)
		}
	}
	if refused != 300-256 {
		t.Errorf("%d of 300 workers were refused", refused)
	}
	other := newRack(t, c, "other")
	other.submit(`1`)
	other.lease()
	if got := c.post("/v1/analyses", `{"workload":`+small+`,"engine":"measured"}`, "Authorization", "Bearer "+user); got.StatusCode != http.StatusAccepted {
		t.Errorf("an analysis: %s %s", got.Status, got.text)
	}
}

// TestReportsAreBounded has a worker report more than the engine takes.
func TestReportsAreBounded(t *testing.T) {
	c, _, _ := guarded(t)
	r := newRack(t, c, "rack")
	j := r.submit(`1`)
	l := r.lease()
	at := "/" + r.id + "/jobs/" + l.Job
	long := func(bytes int) string { return `"` + strings.Repeat("x", bytes) + `"` }
	for what, c := range map[string]struct {
		path, body string
		status     int
	}{
		"a long event":     {"/events", `{"attempt":1,"events":[` + long(job.MaxEvent) + `]}`, http.StatusUnprocessableEntity},
		"long events":      {"/events", `{"attempt":1,"events":[` + long(2<<20) + `]}`, http.StatusRequestEntityTooLarge},
		"many events":      {"/events", `{"attempt":1,"events":[` + strings.Repeat("1,", job.MaxEvents) + `1]}`, http.StatusUnprocessableEntity},
		"a long result":    {"/result", `{"attempt":1,"result":` + long(job.MaxPayload) + `}`, http.StatusUnprocessableEntity},
		"a longer result":  {"/result", `{"attempt":1,"result":` + long(2*job.MaxPayload) + `}`, http.StatusRequestEntityTooLarge},
		"a longer error":   {"/result", `{"attempt":1,"error":` + long(2*job.MaxPayload) + `}`, http.StatusRequestEntityTooLarge},
		"nothing":          {"/result", `{"attempt":1}`, http.StatusUnprocessableEntity},
		"a result of none": {"/result", `{"attempt":7,"result":1}`, http.StatusConflict},
	} {
		if got := r.post(at+c.path, c.body); got.StatusCode != c.status {
			t.Errorf("%s: %s %.200s", what, got.Status, got.text)
		}
	}
	if got := r.post(at+"/result", `{"attempt":1,"error":`+long(3_600_000)+`}`); got.StatusCode != http.StatusNoContent {
		t.Errorf("a long error: %s %s", got.Status, got.text)
	}
	if now, err := c.s.opts.Jobs.Get(t.Context(), j.ID); err != nil || now.State != job.Failed || len(now.Reason) > job.MaxReason {
		t.Errorf("%s with a reason of %d bytes, %v", now.State, len(now.Reason), err)
	}
	if page := c.get("/v1/analyses").text; len(page) > 10<<10 {
		t.Errorf("a list with it has %d bytes", len(page))
	}
}

// TestRevokedWorkersLeave deletes the token of a worker that waits for a job.
func TestRevokedWorkersLeave(t *testing.T) {
	c, _, _ := guarded(t)
	r := newRack(t, c, "rack")
	waiting := make(chan error, 1)
	go func() {
		q, err := http.NewRequest(http.MethodPost, c.base+"/v1/workers/"+r.id+"/lease", strings.NewReader(`{"card":"t4","wait_seconds":60}`))
		if err == nil {
			q.Header.Set("Authorization", "Bearer "+r.token)
			q.Header.Set("Content-Type", "application/json")
			var answer *http.Response
			if answer, err = c.http.Do(q); err == nil {
				err = fmt.Errorf("the answer is %s", answer.Status)
				answer.Body.Close()
			}
		}
		waiting <- err
	}()
	time.Sleep(100 * time.Millisecond) // until it waits
	list, err := token.Open(c.tokens)
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Delete("rack"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := <-waiting; time.Since(began) > 2*time.Second {
		t.Errorf("it waited for %v, %v", time.Since(began), err)
	}
	r.submit(`1`)
	if got := r.post("/"+r.id+"/lease", `{"card":"t4"}`); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("then: %s", got.Status)
	}
}
