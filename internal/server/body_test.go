package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/admission"
)

// Long questions wait until they may be parsed, short ones do not, and others proceed when
// the question is understood or refused.
func TestLongQuestionsAreParsedInTurn(t *testing.T) {
	c := start(t)
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
			release := fill(t, c.s.parsing)
			got := make(chan int, 1)
			go func() { got <- c.post(one.path, one.body).StatusCode }()
			for waiting(c.s.parsing) == 0 {
				time.Sleep(time.Millisecond)
			}
			into[map[string]any](t, c.post("/v1/predictions", small), http.StatusOK)
			release()
			if status := <-got; status != one.status {
				t.Errorf("status %d, want %d", status, one.status)
			}
			fill(t, c.s.parsing)() // all was given back
		})
	}
}

// Many long questions of one client wait before they are received, and short ones of
// others do not.
func TestLongQuestionsAreBounded(t *testing.T) {
	c := start(t)
	c.s.gates[ordinary] = admission.New(admission.Capacity{Slots: 128, PerClient: 64, Queue: 2})
	defer fill(t, c.s.parsing)()
	long := `{"model":"resnet-18","id":"` + strings.Repeat("x", maxSmallBody-100) + `"}`
	for range 2 { // the one waits to be parsed, the other for its slots
		go func() { _ = c.post("/v1/predictions", long) }()
	}
	for waiting(c.s.parsing) == 0 || waiting(c.s.gates[ordinary]) == 0 {
		time.Sleep(time.Millisecond)
	}
	if r := c.post("/v1/predictions", long); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %s", r.Status)
	}
	if release, err := c.s.gates[ordinary].Acquire(t.Context(), "another", 64); err != nil {
		t.Error(err)
	} else {
		release()
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
	if n := len(got.Errors); n != maxDetails+1 || !slices.ContainsFunc(got.Errors, func(d *huma.ErrorDetail) bool { return strings.HasPrefix(d.Message, "and ") }) {
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
// answered: a deadline that stays set would end the request before the answer.
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
