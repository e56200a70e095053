package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/workload"
)

// This file has the endpoints that were there before the API under /v1, as
// their clients know them: names, shapes and texts do not change.

// legacyError is an error as clients of these endpoints know it.
type legacyError struct {
	Status string `json:"status"` // "error"
	Error  string `json:"error"`
}

func (s *Server) legacyRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.root)
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /models", s.models)
	mux.HandleFunc("POST /analyze", s.analyze)
}

// root is the page for a browser, and what the API offers for a program.
func (s *Server) root(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	if wantsPage(r) && s.page(w, r) {
		return
	}
	writeJSON(w, http.StatusOK, "application/json", map[string]any{
		"name": "MemoryMark API", "version": s.opts.Version,
		"endpoints": map[string]string{
			"GET /health": "Is the server well, and which GPU has it?", "GET /models": "The models that have a name",
			"POST /analyze": `The largest batch that trains: {"model_name": "bert"}`,
			"GET /docs":     "The API under /v1, for people", "GET /openapi.json": "The API under /v1, for programs",
		},
	})
}

// health is what monitors and clients ask first. What is not known is null, as
// it was.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	out := struct {
		Status    string    `json:"status"`
		Available bool      `json:"gpu_available"`
		Name      *string   `json:"gpu_name"`
		TotalGB   *float64  `json:"gpu_memory_total_gb"`
		Device    string    `json:"device"`
		Time      time.Time `json:"timestamp"`
	}{Status: "healthy", Device: "cpu", Time: time.Now().UTC()}
	if card, ok := s.machine(); ok {
		total := card.Memory.Bytes.GiB()
		out.Available, out.Name, out.TotalGB, out.Device = true, &card.Name, &total, "cuda"
	}
	writeJSON(w, http.StatusOK, "application/json", out)
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID            string `json:"id"`
		Name          string `json:"name"`
		Description   string `json:"description"`
		Type          string `json:"type"`
		HuggingFaceID string `json:"huggingface_id"`
	}
	out := struct {
		Models []model `json:"models"`
	}{}
	for _, m := range workload.Models() {
		out.Models = append(out.Models, model{m.ID, m.Name, m.Description, m.Type, m.HuggingFaceID})
	}
	writeJSON(w, http.StatusOK, "application/json", out)
}

// analyze answers when the analysis is done.
func (s *Server) analyze(w http.ResponseWriter, r *http.Request) {
	q, text := legacyQuestion(http.MaxBytesReader(w, r.Body, maxSmallBody))
	if text != "" {
		s.fail(w, r, http.StatusBadRequest, text)
		return
	}
	answer, err := s.waitForAnalysis(r.Context(), q)
	if err == nil && answer.OptimalBatch == 0 {
		err = errNothingTrains // they know no answer without a batch
	}
	if err != nil {
		status, text := statusOf(err), err.Error()
		switch {
		case isA[*endedError](err):
			status = http.StatusInternalServerError
		case status == http.StatusInternalServerError:
			s.log.ErrorContext(r.Context(), "analysis failed", "request", callOf(r.Context()).id, "error", err)
			text = internalText(callOf(r.Context()))
		case status == http.StatusUnprocessableEntity:
			status = http.StatusBadRequest // they know no other
		}
		s.fail(w, r, status, text)
		return
	}
	writeJSON(w, http.StatusOK, "application/json", struct {
		Status string           `json:"status"`
		Data   *analysis.Answer `json:"data"`
	}{"success", answer})
}

var errNothingTrains = errors.New("not even the smallest batch trains on this GPU")

// legacyQuestion reads {"model_name": "bert"}; text is what is wrong with it.
// Other keys were always ignored.
func legacyQuestion(body io.Reader) (q Question, text string) {
	data, err := io.ReadAll(body)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return q, "Request body is too large"
	}
	var in map[string]json.RawMessage
	switch {
	case err != nil || len(strings.TrimSpace(string(data))) == 0:
		return q, "Request body is required"
	case json.Unmarshal(data, &in) != nil:
		return q, "Request body must be a JSON object"
	case len(in) == 0:
		return q, "Request body is required"
	}
	var name string
	_ = json.Unmarshal(in["model_name"], &name) // what is no text is no model
	model, err := workload.FindModel(name)
	if err != nil {
		var ids []string
		for _, m := range workload.Models() {
			ids = append(ids, m.ID)
		}
		return q, "Invalid model_name. Must be one of: " + strings.Join(ids, ", ")
	}
	keys := workload.Draft{}
	keys.Set("model", model.ID)
	if q.Workload.workload, err = keys.Workload(); err != nil {
		return q, err.Error()
	}
	return q, ""
}

// ready says whether requests can be answered now and what is stored stays;
// /health only says that the process is well.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	err := s.opts.Jobs.Ready(r.Context())
	if s.running.Err() != nil {
		err = errStopping
	}
	if err != nil {
		s.fail(w, r, http.StatusServiceUnavailable, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, "application/json", map[string]string{"status": "ready"})
}
