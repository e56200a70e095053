package dropped_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"memorymark/internal/dropped"
	"memorymark/internal/job"
	"memorymark/internal/reply"
	"memorymark/internal/server"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/testmachine"
)

const recorded = "../../testdata/truth/snapshots/"

func newServer(t *testing.T) http.Handler {
	t.Helper()
	queue, err := job.Open(context.Background(), job.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(queue.Close)
	store, err := snapshotstore.Open(t.TempDir(), snapshotstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Version: "test", Snapshots: store, Log: slog.New(slog.DiscardHandler), Jobs: queue})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain is what an answer says, without what differs by where a file is kept.
func plain(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("%v: %.200s", err, data)
	}
	for _, key := range []string{"$schema", "created", "stored_bytes"} {
		delete(value, key)
	}
	return value
}

func isOK(status int) bool { return status == http.StatusOK || status == http.StatusCreated }

// Every question gets the answer of the server, about the same files.
func TestAsTheServer(t *testing.T) {
	theirs, ours := newServer(t), dropped.New(1<<30)
	ask := func(method, target string, body []byte) map[string]any {
		t.Helper()
		want := httptest.NewRecorder()
		theirs.ServeHTTP(want, httptest.NewRequest(method, target, bytes.NewReader(body)))
		got := ours.Ask(method, target, bytes.NewReader(body))
		if got.Status != want.Code {
			t.Errorf("%s %s: %d %.300s, want %d %.300s", method, target, got.Status, got.Body, want.Code, want.Body)
			return nil
		}
		answer := plain(t, got.Body)
		if isOK(got.Status) && !reflect.DeepEqual(answer, plain(t, want.Body.Bytes())) {
			t.Errorf("%s %s: %.2000s\nwant %.2000s", method, target, got.Body, want.Body)
		}
		return answer
	}
	var ids []string
	for _, name := range []string{"gpt2_oom.pickle.xz", "llama_b2_s256_bf16_adamw_train.pickle.xz"} {
		answer := ask("POST", "/v1/snapshots?name="+url.QueryEscape(name), testmachine.ReadFile(t, recorded+name))
		ids = append(ids, fmt.Sprint(answer["id"]))
	}
	for i, id := range ids {
		for _, rest := range []string{
			"", "/timeline", "/timeline?device=0&from=100&to=900&columns=300&detail=200&by_stack=true", "/timeline?to=900000", "/timeline?columns=0",
			"/top", "/top?at=end&by=stack&n=3", "/top?by=size", "/top?by=category&at=1000", "/top?at=oom", "/top?at=never", "/top?n=0",
			"/flame", "/flame?at=end", "/segments", "/segments?at=500", "/stretch?from=100&to=2000&n=5", "/stretch?from=9&to=3",
			"/events", "/events?from=50&limit=7&action=alloc&min_bytes=1000000", "/events?action=oom,segment_alloc&limit=5", "/events?frame=FORWARD&limit=3",
			"/events?allocation=12", "/events?address=140000000000000&max_bytes=9", "/events?address=-1", "/events?limit=2000", "/replay", "/replay?limit_bytes=1073741824", "/replay?expandable_segments=true",
			"/replay?limit_bytes=5", "/replay?gc_threshold=x", "/replay?max_split_size_bytes=209715200&roundup=4", "/replay?graph_pool_bytes=4194304",
			"/compare?n=50&with=" + ids[1-i], "/diff?n=40&at=end&with=" + ids[1-i], "/top?device=3",
		} {
			ask("GET", "/v1/snapshots/"+id+rest, nil)
		}
	}
	gone := strings.Repeat("0", 64)
	ask("GET", "/v1/snapshots/"+gone, nil)
	ask("GET", "/v1/snapshots/"+gone+"/timeline", nil)
	ask("GET", "/v1/snapshots/"+ids[0]+"/compare?with="+gone, nil)
	for _, bad := range []string{"", "PK", "{}", "\x80\x04N.", "\x80\x02c__builtin__\neval\n.", "\x1f\x8b"} {
		ask("POST", "/v1/snapshots?name=x", []byte(bad))
	}
}

func TestList(t *testing.T) {
	files := dropped.New(1 << 30)
	list := func() map[string]any { return plain(t, files.Ask("GET", "/v1/snapshots", nil).Body) }
	if empty := list(); len(empty["snapshots"].([]any)) != 0 || empty["max_upload_bytes"].(float64) != 4<<30 {
		t.Errorf("%v", empty)
	}
	for range 2 { // the same file is there once
		files.Ask("POST", "/v1/snapshots?name=a.pickle.xz", bytes.NewReader(testmachine.ReadFile(t, recorded+"gpt2_oom.pickle.xz")))
	}
	one := list()["snapshots"].([]any)
	if len(one) != 1 || one[0].(map[string]any)["name"] != "a.pickle.xz" {
		t.Errorf("%v", one)
	}
	if answer := files.Ask("DELETE", "/v1/snapshots/x", nil); answer.Status != reply.NotHere {
		t.Errorf("%s", answer.Body)
	}
}

// Those that were looked at longest ago leave memory, and are read again when they are asked about.
func TestMemory(t *testing.T) {
	files := dropped.New(6 << 20)
	add := func(name string) (id string) {
		t.Helper()
		data := testmachine.ReadFile(t, recorded+name)
		answer := files.Ask("POST", "/v1/snapshots?name="+name, bytes.NewReader(data))
		if answer.Status != reply.Created {
			t.Fatalf("%s: %s", name, answer.Body)
		}
		return fmt.Sprint(plain(t, answer.Body)["id"])
	}
	first, second := add("gpt2_oom.pickle.xz"), add("bert_b4_s128_fp32_adamw_train.pickle.xz")
	for range 2 {
		for _, id := range []string{first, second} {
			if answer := files.Ask("GET", "/v1/snapshots/"+id+"/top", nil); answer.Status != reply.OK {
				t.Errorf("%s", answer.Body)
			}
		}
	}
	answer := dropped.New(2<<20).Ask("POST", "/v1/snapshots", bytes.NewReader(testmachine.ReadFile(t, recorded+"gpt2_oom.pickle.xz")))
	if answer.Status != reply.TooLarge || !strings.Contains(string(answer.Body), "larger than the limit") {
		t.Errorf("beyond the limit: %d %s", answer.Status, answer.Body)
	}
}
