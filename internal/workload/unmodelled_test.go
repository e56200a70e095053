package workload

import (
	"strings"
	"testing"
)

// TestRunnable takes what PyTorch may know, and says why it cannot be predicted.
func TestRunnable(t *testing.T) {
	for _, c := range []struct{ text, why string }{
		{`{"config":{"model_type":"biogpt","hidden_size":64}}`, `model_type "biogpt" is not modelled`},
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
	if err != nil || w.Image != 336 || w.Name() != "chinese_clip" {
		t.Errorf("%+v, %v", w, err)
	}
}

// TestRunnableErrors are what not even PyTorch could run, or not in time.
func TestRunnableErrors(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	for text, want := range map[string]string{
		`{"config":{"architectures":["BloomModel"]}}`:                                    `architecture "BloomModel" is not modelled`,
		`{"config":{"model_type":"../bloom"}}`:                                           "which is not the name of a model type",
		`{"config":{"model_type":"bloom","architectures":["os.system"]}}`:                "which is not the name of a class",
		`{"config":{"model_type":"bloom","num_hidden_layers":1000000}}`:                  "num_hidden_layers is 1e+06; it must be from 0 to 1000",
		`{"config":{"model_type":"chinese_clip","text_config":{"encoder_layers":1001}}}`: "encoder_layers is 1001",
		`{"config":{"model_type":"swinv2","depths":[2,2000]}}`:                           "depths is 2000",
		`{"config":{"model_type":"bloom","x":` + deep + `}}`:                             "too deep or too long",
		`{"model":"bert","sequence":513,"config":{}}`:                                    "sequence is 513; it must be at most 512",
		`{"config":{"model_type":"bloom"},"batch":0}`:                                    "batch is 0",
	} {
		if _, err := ParseRunnable([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
