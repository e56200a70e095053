package workload

import "fmt"

// LM is the configuration of the plain transformer language model, whose code
// is internal/measure/worker/memorymark_worker/lm.py.
type LM struct {
	VocabSize int64 `json:"vocab_size"`
	Width     int64 `json:"d_model"`
	Inner     int64 `json:"d_ff"`
	Layers    int64 `json:"num_layers"`
	Heads     int64 `json:"num_heads"`
}

// LM reads a configuration of the plain language model.
func (c *Config) LM() (*LM, error) {
	l := &LM{VocabSize: 10000, Width: 768, Inner: 3072, Layers: 12, Heads: 12}
	if err := c.decode(l, "context_length"); err != nil {
		return nil, err
	}
	if l.Width%(2*l.Heads) != 0 { // rotary positions turn pairs
		return nil, fmt.Errorf("config: d_model is %d, which num_heads, %d, does not divide into heads of an even size", l.Width, l.Heads)
	}
	return l, nil
}
