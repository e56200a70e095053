package server

import (
	"context"
	"net/http"

	"memorymark/internal/analysis"
)

// waitForAnalysis answers a question when its analysis is done.
func (s *Server) waitForAnalysis(ctx context.Context, q Question) (*analysis.Answer, error) {
	r, err := s.request(q)
	if err != nil {
		return nil, err
	}
	return remembered(ctx, s.compute, "analysis "+requestKey(r), func() (*analysis.Answer, error) {
		a, err := analysis.Predict(r)
		return a, predicted(err)
	})
}

// ready says whether requests can be answered now; /health only says that the
// process is well.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.stopping:
		s.fail(w, r, http.StatusServiceUnavailable, "the server is stopping")
	default:
		writeJSON(w, http.StatusOK, "application/json", map[string]string{"status": "ready"})
	}
}
