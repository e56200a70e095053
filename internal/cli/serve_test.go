package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// serve runs memorymark serve in this process and returns its address. The
// server stops with the test.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	var log bytes.Buffer
	code := make(chan int)
	args = append([]string{"serve", "--json", "--listen", "127.0.0.1:0", "--data", t.TempDir()}, args...)
	go func() {
		code <- Run(ctx, args, strings.NewReader(""), in, &log)
		in.Close()
	}()
	t.Cleanup(func() {
		stop()
		if got := <-code; got != exitOK {
			t.Errorf("serve ended with %d: %s", got, log.String())
		}
	})
	var said serving
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&said); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	return said.URL
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %s", url, r.Status, err, data)
	}
	return string(data)
}

func TestServe(t *testing.T) {
	url := serve(t, "--log-json")
	if text := fetch(t, url+"/health"); !strings.Contains(text, `"status":"healthy"`) {
		t.Error(text)
	}
	if text := fetch(t, url+"/v1/models"); !strings.Contains(text, `"id":"bert"`) {
		t.Error(text)
	}
}

// An analysis goes through the queue and is still there after a restart.
func TestServeAnalyses(t *testing.T) {
	data := t.TempDir()
	var answer struct {
		Status string
		Data   struct {
			Batch int64 `json:"optimal_batch_size"`
		}
	}
	t.Run("first", func(t *testing.T) {
		url := serve(t, "--data", data)
		r, err := http.Post(url+"/analyze", "application/json", strings.NewReader(`{"model_name":"resnet-18"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Status != "success" || answer.Data.Batch == 0 {
			t.Fatalf("%+v, %v", answer, err)
		}
		if text := fetch(t, url+"/v1/workers"); !strings.Contains(text, `"name":"predictions"`) {
			t.Error(text)
		}
	})
	t.Run("second", func(t *testing.T) {
		url := serve(t, "--data", data)
		text := fetch(t, url+"/v1/analyses?model=resnet-18&state=succeeded")
		if !strings.Contains(text, `"total":1`) {
			t.Error(text)
		}
	})
}
