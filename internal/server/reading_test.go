package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Long questions wait for their turn to be read, short ones do not, and a turn is
// over when the question is understood or refused.
func TestLongQuestionsAreReadInTurn(t *testing.T) {
	c := start(t)
	c.s.reading = newLine(0)
	labels := strings.Repeat(`"0":"a",`, longBody/8) + `"1":"b"`
	for name, one := range map[string]struct {
		path, body string
		status     int
	}{
		"predicted":  {"/v1/predictions", `{"model":"resnet-18","config":{"depths":[1,1,1,1],"id2label":{` + labels + `}}}`, http.StatusOK},
		"refused":    {"/v1/predictions", `{"model":"resnet-18","config":{"unknown":{` + labels + `}}}`, http.StatusUnprocessableEntity},
		"not JSON":   {"/v1/fits", strings.Repeat("[", longBody), http.StatusBadRequest},
		"too large":  {"/v1/predictions", strings.Repeat(" ", maxSmallBody+1), http.StatusRequestEntityTooLarge},
		"from older": {"/analyze", `{"model_name":"` + strings.Repeat("x", longBody) + `"}`, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan int, 1)
			go func() { got <- c.post(one.path, one.body).StatusCode }()
			for c.s.reading.length() == 0 {
				time.Sleep(time.Millisecond)
			}
			into[map[string]any](t, c.post("/v1/predictions", small), http.StatusOK)
			c.s.reading.leave()
			if status := <-got; status != one.status {
				t.Errorf("status %d, want %d", status, one.status)
			}
			if err := c.s.reading.enter(t.Context(), ""); err != nil {
				t.Error(err) // the turn was given back
			}
		})
	}
}

// One client's long questions leave room for others', and for short ones.
func TestLongQuestionsAreBounded(t *testing.T) {
	c := start(t)
	c.s.reading = newLine(0)
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer leave()
	wait := func(client string) {
		all.Go(func() { _ = c.s.reading.enter(ctx, client) })
	}
	for range mostLong / 2 {
		wait("127.0.0.1")
	}
	for c.s.reading.length() < mostLong/2 {
		time.Sleep(time.Millisecond)
	}
	long := `{"model":"resnet-18","id":"` + strings.Repeat("x", longBody) + `"}`
	if r := c.post("/v1/predictions", long); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %s", r.Status)
	}
	into[map[string]any](t, c.post("/v1/predictions", small), http.StatusOK)
}

// Requests under way leave places for other clients' ones.
func TestPlacesAreShared(t *testing.T) {
	p := newPlaces(8)
	var leave []func()
	for {
		l, ok := p.enter("greedy")
		if !ok {
			break
		}
		leave = append(leave, l)
	}
	other, ok := p.enter("other")
	if len(leave) != 4 || !ok {
		t.Fatalf("a greedy client has %d of 8 places, another has one: %v", len(leave), ok)
	}
	other()
	for _, l := range leave {
		l()
		l() // once is enough
	}
	if p.all != 0 || len(p.taken) != 0 {
		t.Errorf("afterwards %+v", p)
	}
}

// What is wrong in thousands of places is not answered with as many copies of the
// question.
func TestErrorsAreShort(t *testing.T) {
	c := start(t)
	many := func(each func(int) string) string {
		parts := make([]string, 2000)
		for i := range parts {
			parts[i] = each(i)
		}
		return strings.Join(parts, ",")
	}
	for name, one := range map[string]struct{ path, body string }{
		"the same card":   {"/v1/comparisons/cards", `{"workload":` + small + `,"gpus":[` + many(func(int) string { return `"t4"` }) + `]}`},
		"unknown keys":    {"/v1/predictions", `{` + many(func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + `}`},
		"unknown config":  {"/v1/predictions", `{"model":"bert","config":{` + many(func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + `}}`},
		"no cards":        {"/v1/comparisons/cards", `{"workload":` + small + `,"gpus":[[],[]]}`},
		"a long name":     {"/v1/predictions", `{"model":"` + strings.Repeat("é", 200_000) + `"}`},
		"nested too deep": {"/v1/predictions", strings.Repeat("[", 200_000)},
		"legacy":          {"/v1/" + strings.Repeat("x", 10_000), `{}`},
	} {
		r := c.post(one.path, one.body)
		if r.StatusCode < 400 || r.StatusCode >= 500 || len(r.text) > 64<<10 {
			t.Errorf("%s: %s with %d bytes", name, r.Status, len(r.text))
		}
	}
	got := into[huma.ErrorModel](t, c.post("/v1/predictions", `{`+many(func(i int) string { return fmt.Sprintf(`"k%d":1`, i) })+`}`), http.StatusUnprocessableEntity)
	if n := len(got.Errors); n != mostDetails+1 || !slices.ContainsFunc(got.Errors, func(d *huma.ErrorDetail) bool { return strings.HasPrefix(d.Message, "and ") }) {
		t.Errorf("%d errors, the last %+v", n, got.Errors[n-1])
	}
}

// deadlines notes the last deadline for reading that a request was given.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.last = t
	return nil
}

// The time within which a question must arrive does not count while it is
// answered: a deadline that is left would end the request in the midst of that.
func TestAnswersHaveTime(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{"/v1/predictions", "/v1/comparisons/cards", "/v1/fits", "/v1/sweeps", "/v1/reports", "/v1/analyses", "/analyze"} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder(), last: time.Now()}
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"nothing":1}`))
		r.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(w, r)
		if !w.last.IsZero() {
			t.Errorf("%s: a deadline is left", path)
		}
	}
}
