package server

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"memorymark/internal/workload"
)

// TestExistingClient plays a client that was written for the endpoints without
// a version: it takes answers and errors apart by their texts.
func TestExistingClient(t *testing.T) {
	c := start(t, card(t, "a10"))
	c.work(1)

	health := into[map[string]any](t, c.get("/health"), http.StatusOK)
	if health["status"] != "healthy" || health["gpu_available"] != true || health["gpu_name"] != "NVIDIA A10" ||
		health["gpu_memory_total_gb"] != 22.07 || health["device"] != "cuda" {
		t.Errorf("health: %v", health)
	}
	if _, err := time.Parse(time.RFC3339, health["timestamp"].(string)); err != nil {
		t.Error(err)
	}

	list := into[struct {
		Models []map[string]string `json:"models"`
	}](t, c.get("/models"), http.StatusOK)
	bert := slices.IndexFunc(list.Models, func(m map[string]string) bool { return m["id"] == "bert" })
	if bert < 0 || list.Models[bert]["huggingface_id"] != "google-bert/bert-base-uncased" || list.Models[bert]["type"] != "nlp" ||
		list.Models[bert]["name"] == "" || list.Models[bert]["description"] == "" || len(list.Models[bert]) != 5 {
		t.Errorf("models: %v", list.Models)
	}

	answer := into[struct {
		Status string         `json:"status"`
		Data   map[string]any `json:"data"`
	}](t, c.post("/analyze", `{"model_name":"bert"}`), http.StatusOK)
	if answer.Status != "success" {
		t.Errorf("analyze: %v", answer)
	}
	for _, key := range []string{
		"model_name", "device", "engine", "gpu_name", "gpu_total_gb", "gpu_total_bytes", "optimal_batch_size", "optimal_memory_gb",
		"recommended_batch_size", "current_batch_size", "current_memory_gb", "waste_gb", "waste_percent", "current_waste_gb",
		"current_waste_percent", "batch_ratio", "speedup", "speedup_basis", "cost_savings_annual", "memory_line", "results",
		"accuracy", "provenance",
	} {
		if _, ok := answer.Data[key]; !ok {
			t.Errorf("analyze: no %s", key)
		}
	}
	if answer.Data["gpu_name"] != "NVIDIA A10" || answer.Data["current_batch_size"] != 16.0 {
		t.Errorf("analyze: %v", answer.Data)
	}
}

// Without a card the fields are there and null.
func TestHealthWithoutCard(t *testing.T) {
	health := into[map[string]any](t, start(t).get("/health"), http.StatusOK)
	name, hasName := health["gpu_name"]
	total, hasTotal := health["gpu_memory_total_gb"]
	if health["gpu_available"] != false || health["device"] != "cpu" || !hasName || name != nil || !hasTotal || total != nil {
		t.Errorf("health: %v", health)
	}
}

func TestLegacyErrors(t *testing.T) {
	c := start(t)
	var ids []string
	for _, m := range workload.Models() {
		ids = append(ids, m.ID)
	}
	invalid := "Invalid model_name. Must be one of: " + strings.Join(ids, ", ")
	for _, test := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"POST", "/analyze", "", 400, "Request body is required"},
		{"POST", "/analyze", "{}", 400, "Request body is required"},
		{"POST", "/analyze", "[1]", 400, "Request body must be a JSON object"},
		{"POST", "/analyze", `{"model_name":"gpt5"}`, 400, invalid},
		{"POST", "/analyze", `{"model_name":7}`, 400, invalid},
		{"POST", "/analyze", `{"model_name":"../../etc/passwd"}`, 400, invalid},
		{"POST", "/analyze", `{"x":"` + strings.Repeat("x", 2<<20) + `"}`, 400, "Request body is too large"},
		{"GET", "/analyze", "", 405, "Method not allowed"},
		{"DELETE", "/health", "", 405, "Method not allowed"},
		{"GET", "/nowhere", "", 404, "Endpoint not found"},
		{"POST", "/nowhere", "", 404, "Endpoint not found"},
	} {
		got := into[legacyError](t, c.do(test.method, test.path, test.body), test.status)
		if got.Status != "error" || got.Error != test.text {
			t.Errorf("%s %s %.40s: %+v", test.method, test.path, test.body, got)
		}
	}
}

// A panic is one request's, and tells its client nothing of the inside.
func TestPanic(t *testing.T) {
	s := newServer(t)
	h := s.observed(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("the secret inside") }))
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, "/analyze", nil))
	if r.Code != http.StatusInternalServerError || strings.Contains(r.Body.String(), "secret") || !strings.Contains(r.Body.String(), r.Header().Get("X-Request-Id")) {
		t.Errorf("%d: %s", r.Code, r.Body)
	}
	after := httptest.NewRecorder()
	if s.handler.ServeHTTP(after, httptest.NewRequest(http.MethodGet, "/v1/models", nil)); after.Code != http.StatusOK {
		t.Errorf("the next request: %d", after.Code)
	}
}

func TestRoot(t *testing.T) {
	c := start(t)
	if info := into[map[string]any](t, c.get("/"), http.StatusOK); info["name"] != "MemoryMark API" {
		t.Errorf("%v", info)
	}
	page := c.get("/", "Accept", "text/html,*/*")
	if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") || !strings.Contains(page.text, "make web") {
		t.Errorf("a browser gets %s: %s", page.Header.Get("Content-Type"), page.text)
	}
}
