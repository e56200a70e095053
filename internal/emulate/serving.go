package emulate

import (
	"encoding/json"
	"strings"

	"memorymark/internal/bytesize"
)

// Serving is how an inference server started.
type Serving struct {
	Engine  string `json:"engine"` // vLLM
	Version string `json:"version"`
	Model   string `json:"model"`
	Starts  bool   `json:"starts"`
	Error   string `json:"error,omitempty"` // why it does not start
	GPUs    int    `json:"gpus"`            // that it uses, each of them like the others
	// Dummy weights were made up, not read from a file.
	Dummy bool `json:"dummy_weights,omitempty"`

	Weights     bytesize.Bytes `json:"weights_bytes"`    // on one GPU
	Activations bytesize.Bytes `json:"activation_bytes"` // of its largest batch, with its CUDA graphs
	KVCache     bytesize.Bytes `json:"kv_bytes"`

	Tokens      int64   `json:"tokens,omitempty"` // that the KV cache has space for
	MaxModelLen int64   `json:"max_model_len"`
	Concurrency float64 `json:"concurrency,omitempty"` // requests of that length at once
	// LargestMaxModelLen is the longest request that the KV cache has space for,
	// within ModelLimit, which the model is made for.
	LargestMaxModelLen int64 `json:"largest_max_model_len,omitempty"`
	ModelLimit         int64 `json:"model_limit,omitempty"`
}

// serve adds what one process knows of the server.
func (s *Summary) serve(known json.RawMessage) error {
	if len(known) == 0 || string(known) == "null" {
		return nil
	}
	if s.Serving == nil {
		s.Serving = &Serving{}
	}
	return json.Unmarshal(known, s.Serving)
}

// lacksMemory reports whether a server did not start for want of memory. vLLM
// says so in its error, whatever else it says.
func (s *Serving) lacksMemory() bool {
	return !s.Starts && strings.Contains(s.Error, "memory")
}
