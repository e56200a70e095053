package server

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkPrediction is what the server itself adds to a prediction: reading
// and checking the request, finding the answer, writing it.
func BenchmarkPrediction(b *testing.B) {
	s := newServer(b, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(io.Discard, nil)) })
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/v1/predictions", strings.NewReader(`{"model":"bert","precision":"amp-bf16","batch":7}`))
		r.Header.Set("Content-Type", "application/json")
		s.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
