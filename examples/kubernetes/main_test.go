package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const job = `{
  "apiVersion": "batch/v1",
  "kind": "Job",
  "metadata": {
    "name": "tune",
    "annotations": {"memorymark/workload": "{\"model\": \"gpt2\", \"batch\": 64, \"precision\": \"amp-bf16\"}"}
  },
  "spec": {"template": {"spec": {"containers": [{"name": "train", "image": "pytorch"}], "restartPolicy": "Never"}}}
}`

func TestAnnotate(t *testing.T) {
	var out bytes.Buffer
	if err := annotate(strings.NewReader(job), &out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata struct{ Annotations map[string]string }
		Spec     any
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	a := got.Metadata.Annotations
	if a["memorymark/smallest-gpu"] != "rtx-5080" || !strings.HasSuffix(a["memorymark/gpu-memory"], " GiB") || len(a["memorymark/gpu-memory-bytes"]) != 11 {
		t.Errorf("annotations %v", a)
	}
	if got.Spec == nil {
		t.Error("the rest of the job is gone")
	}
}

func TestNoAnnotation(t *testing.T) {
	err := annotate(strings.NewReader(`{"kind": "Job"}`), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "memorymark/workload") {
		t.Errorf("err is %v", err)
	}
}
