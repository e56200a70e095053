package workload

import (
	"strings"
	"testing"
)

// TestRunnable takes what PyTorch may know, and says why it cannot be predicted.
func TestRunnable(t *testing.T) {
	for _, c := range []struct{ text, why string }{
		{`{"config":{"model_type":"nonesuch","hidden_size":64}}`, `model_type "nonesuch" is not modelled`},
		{`{"config":{"model_type":"bert","architectures":["BertForMultipleChoice"]}}`, `architecture "BertForMultipleChoice" is not modelled`},
		{`{"model":"bert","config":{"window":4}}`, `config: "window" of a bert is not modelled`},
		{`{"model":"bert"}`, ""},
	} {
		w, err := ParseRunnable([]byte(c.text))
		if err != nil || !strings.HasPrefix(w.Unmodelled, c.why) || (c.why == "") != (w.Unmodelled == "") {
			t.Errorf("%s: %+v, %v", c.text, w, err)
		}
		if _, err := Parse([]byte(c.text)); (err == nil) != (c.why == "") {
			t.Errorf("%s can be predicted: %v", c.text, err)
		}
	}
	w, err := ParseRunnable([]byte(`{"config":{"model_type":"chinese_clip","vision_config":{"image_size":336}}}`))
	if err != nil || w.Image != 336 || !strings.HasPrefix(strings.ToLower(strings.ReplaceAll(w.Name(), "_", "")), "chineseclip") {
		t.Errorf("%+v, %v", w, err)
	}
}
