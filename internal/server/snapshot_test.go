package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"memorymark/internal/predict"
	"memorymark/internal/recording"
	"memorymark/internal/snapshot"
	"memorymark/internal/snapshotstore"
	"memorymark/internal/testmachine"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

func recorded(t *testing.T) []byte {
	t.Helper()
	data := testmachine.ReadFile(t, "../../testdata/truth/snapshots/gpt2_oom.pickle.xz")
	return data
}

// What comes over HTTP is what the packages behind it say of the same file.
func TestSnapshots(t *testing.T) {
	c := start(t)
	data := recorded(t)
	r := c.post("/v1/snapshots?name=/home/me/gpt2_oom.pickle.xz", string(data))
	snap := into[Snapshot](t, r, http.StatusCreated)
	sum := sha256.Sum256(data)
	if snap.ID != hex.EncodeToString(sum[:]) || r.Header.Get("Location") != "/v1/snapshots/"+snap.ID || snap.Name != "gpt2_oom.pickle.xz" ||
		snap.Bytes != int64(len(data)) || snap.Encoding != "xz" || len(snap.Devices) != 1 || len(snap.Devices[0].Failures) != 1 {
		t.Errorf("%+v", snap)
	}
	at := "/v1/snapshots/" + snap.ID
	file, err := snapshot.Read(bytes.NewReader(data), snapshot.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := recording.Choose(file, recording.BusiestDevice)
	if err != nil {
		t.Fatal(err)
	}
	want := recording.New(tr)

	top := into[recording.Top](t, c.get(at+"/top?at=oom&n=3"), http.StatusOK)
	wantTop, err := want.Top("oom", "stack", 3)
	if err != nil || top.LiveBytes != wantTop.LiveBytes || len(top.Groups) != 3 || top.Groups[0].Bytes != wantTop.Groups[0].Bytes {
		t.Errorf("%+v, want %+v, %v", top, wantTop, err)
	}
	replay := into[recording.Replay](t, c.get(at+"/replay"), http.StatusOK)
	if !replay.MatchesRecording {
		t.Errorf("%+v", replay)
	}
	limited := into[recording.Replay](t, c.get(at+"/replay?limit_bytes=1073741824&expandable_segments=true"), http.StatusOK)
	if limited.Fits || limited.Limit != 1<<30 || !strings.Contains(limited.Settings, "expandable_segments") {
		t.Errorf("%+v", limited)
	}
	again := into[Snapshot](t, c.get(at), http.StatusOK)
	if again.ID != snap.ID || again.Devices[0].Peak != snap.Devices[0].Peak && *again.Devices[0].Peak.Reserved != *snap.Devices[0].Peak.Reserved {
		t.Errorf("%+v", again)
	}
	whole := c.get(at + "/file")
	if whole.text != string(data) {
		t.Errorf("%d bytes came back of %d", len(whole.text), len(data))
	}
	list := into[Snapshots](t, c.get("/v1/snapshots"), http.StatusOK)
	if len(list.Snapshots) != 1 || list.Snapshots[0].ID != snap.ID || list.Stored == 0 {
		t.Errorf("%+v", list)
	}
	compare := into[recording.Compare](t, c.get(at+"/compare?with="+snap.ID), http.StatusOK)
	diff := into[recording.Diff](t, c.get(at+"/diff?with="+snap.ID), http.StatusOK)
	if !compare.Same || len(diff.Changes) != 0 {
		t.Errorf("it differs from itself: %+v, %+v", compare, diff)
	}
	if r := c.do(http.MethodDelete, at, ""); r.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %s", r.Status)
	}
	into[huma.ErrorModel](t, c.get(at), http.StatusNotFound)
}

// A replay takes what the command line takes, and nothing else.
func TestReplayRules(t *testing.T) {
	c := start(t)
	at := "/v1/snapshots/" + into[Snapshot](t, c.post("/v1/snapshots", string(recorded(t))), http.StatusCreated).ID + "/replay?"
	good := into[recording.Replay](t, c.get(at+"limit_bytes=8589934592&gc_threshold=0.8&max_split_size_bytes=20971520&roundup=8"), http.StatusOK)
	if want := "garbage_collection_threshold:0.8"; good.Limit != 8<<30 || !strings.Contains(good.Settings, want) {
		t.Errorf("%+v", good)
	}
	for query, place := range map[string]string{
		"limit_bytes=8589934592&gc_threshold=1": "query.gc_threshold", "limit_bytes=8589934592&gc_threshold=0": "query.gc_threshold",
		"gc_threshold=0.8": "query.gc_threshold", "roundup=6": "query.roundup", "roundup=0": "query.roundup", "graph_pool_bytes=1048576": "query.graph_pool_bytes",
		"limit_bytes=24": "query.limit_bytes", "limit_bytes=much": "query.limit_bytes", "max_split_size_bytes=1048576": "query.max_split_size_bytes",
		"expandable_segments=maybe": "query.expandable_segments",
	} {
		got := into[huma.ErrorModel](t, c.get(at+query), http.StatusUnprocessableEntity)
		if len(got.Errors) != 1 || got.Errors[0].Location != place {
			t.Errorf("%s: %+v", query, got)
		}
	}
}

// A window is the same part of the same picture, and packed on the way.
func TestTimelineWindow(t *testing.T) {
	c := start(t)
	at := "/v1/snapshots/" + into[Snapshot](t, c.post("/v1/snapshots", string(recorded(t))), http.StatusCreated).ID
	all := into[timeline.Wire](t, c.get(at+"/timeline?columns=500"), http.StatusOK)
	if len(all.Moments) != 500 || all.To != all.Events || len(all.Shapes) == 0 || len(all.Frames) == 0 {
		t.Fatalf("%d columns of %d to %d, %d shapes", len(all.Moments), all.From, all.To, len(all.Shapes))
	}
	part := into[timeline.Wire](t, c.get(at+"/timeline?columns=500&from=100&to=200&detail=10"), http.StatusOK)
	if part.From != 100 || part.To != 200 || len(part.Moments) != 101 || len(part.Shapes) > 11 || part.Peak.Bytes > all.Peak.Bytes {
		t.Errorf("%d columns of %d to %d, %d shapes, peak %+v", len(part.Moments), part.From, part.To, len(part.Shapes), part.Peak)
	}
	for query, place := range map[string]string{
		"from=200&to=100": "query.from", "to=99999999": "query.from", "columns=0": "query.columns", "detail=1000000": "query.detail", "from=-1": "query.from",
	} {
		got := into[huma.ErrorModel](t, c.get(at+"/timeline?"+query), http.StatusUnprocessableEntity)
		if len(got.Errors) != 1 || got.Errors[0].Location != place {
			t.Errorf("%s: %+v", query, got)
		}
	}
	packed := c.get(at+"/timeline", "Accept-Encoding", "gzip")
	if packed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v", packed.Header)
	}
	z, err := gzip.NewReader(strings.NewReader(packed.text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || !json.Valid(plain) || len(packed.text) > len(plain)/2 {
		t.Errorf("%d bytes packed to %d, %v", len(plain), len(packed.text), err)
	}
}

func TestSnapshotEvents(t *testing.T) {
	c := start(t)
	at := "/v1/snapshots/" + into[Snapshot](t, c.post("/v1/snapshots", string(recorded(t))), http.StatusCreated).ID
	first := into[Events](t, c.get(at+"/events?limit=10"), http.StatusOK)
	if len(first.Events) != 10 || first.Next == nil || *first.Next != 10 || first.Total < 1000 {
		t.Fatalf("%+v", first)
	}
	oom := into[Events](t, c.get(at+"/events?action=oom"), http.StatusOK)
	if len(oom.Events) != 1 || oom.Next != nil || oom.Events[0].Action != "oom" || len(oom.Events[0].Frames) == 0 {
		t.Fatalf("%+v", oom)
	}
	big := into[Events](t, c.get(at+"/events?action=alloc&min_bytes=10000000&frame=gpt2&limit=5"), http.StatusOK)
	if len(big.Events) != 5 || slices.ContainsFunc(big.Events, func(e recording.EventRow) bool { return e.Bytes < 10_000_000 || e.Allocation == nil || e.Micros == nil }) {
		t.Errorf("%+v", big)
	}
	end := into[recording.Segments](t, c.get(at+"/segments"), http.StatusOK)
	early := into[recording.Segments](t, c.get(at+"/segments?at=100"), http.StatusOK)
	if len(end.Segments) == 0 || len(early.Segments) == 0 || early.Event != 100 {
		t.Errorf("%d segments at the end, %d at event 100", len(end.Segments), len(early.Segments))
	}
	known := false
	for _, s := range append(end.Segments, early.Segments...) {
		var sum int64
		for i := 0; i < len(s.Blocks); i += 6 {
			known = known || s.Blocks[i+5] == int64(trace.Parameter)
			if s.Blocks[i] != sum {
				t.Fatalf("the blocks of %+v leave holes", s)
			}
			sum += s.Blocks[i+1]
		}
		if sum != s.Bytes {
			t.Errorf("%d bytes of blocks in a segment of %d", sum, s.Bytes)
		}
	}
	if !known {
		t.Error("no block holds parameters")
	}
	if got := early.Totals; got.Count != len(early.Segments) || got.UsedBytes+got.FreeBytes != got.Bytes || got.Bytes == 0 {
		t.Errorf("totals %+v", got)
	}
	into[huma.ErrorModel](t, c.get(at+"/segments?at=noon"), http.StatusUnprocessableEntity)
	into[huma.ErrorModel](t, c.get(at+"/top?device=7"), http.StatusUnprocessableEntity)
}

// A prediction is a snapshot like any other, and the same one each time.
func TestPredictedSnapshot(t *testing.T) {
	c := start(t)
	first := into[Snapshot](t, c.post("/v1/predictions/snapshot", small), http.StatusCreated)
	if first.Origin != snapshotstore.Predicted || len(first.Devices) != 1 {
		t.Fatalf("%+v", first)
	}
	prediction := into[predict.Prediction](t, c.post("/v1/predictions", small), http.StatusOK)
	if got, want := first.Devices[0].Peak.Reserved, int64(prediction.Steps[2].PeakReserved); got == nil || *got != want {
		t.Errorf("reserved %v, predicted %d", got, want)
	}
	second := into[Snapshot](t, c.post("/v1/predictions/snapshot", small), http.StatusCreated)
	if second.ID != first.ID {
		t.Error("the same workload is another file")
	}
	c.do(http.MethodDelete, "/v1/snapshots/"+first.ID, "")
	if third := into[Snapshot](t, c.post("/v1/predictions/snapshot", small), http.StatusCreated); third.ID != first.ID {
		t.Error("after it was deleted it is another file")
	}
	replay := into[recording.Replay](t, c.get("/v1/snapshots/"+first.ID+"/replay"), http.StatusOK)
	if !replay.MatchesRecording {
		t.Errorf("%+v", replay)
	}
}

func TestBadUploads(t *testing.T) {
	c := start(t)
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"no pickle": {"hello", 422},
		"empty":     {"", 422},
		"code":      {"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.", 422},
		"too large": {strings.Repeat("x", 8<<20+1), 413},
		"truncated": {string(recorded(t)[:10000]), 422},
	} {
		got := into[huma.ErrorModel](t, c.post("/v1/snapshots", test.body), test.status)
		if got.Detail == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if list := into[Snapshots](t, c.get("/v1/snapshots"), http.StatusOK); len(list.Snapshots) != 0 || list.Stored != 0 {
		t.Errorf("kept: %+v", list)
	}
}

// Many look at many snapshots with little memory: some are read again and
// again, and all answers are right.
func TestLibraryUnderPressure(t *testing.T) {
	c := start(t, func(o *Options) { o.SnapshotMemory = 1 << 20 })
	var ids []string
	var peaks []int64
	for _, batch := range []string{"1", "2", "3", "4"} {
		body := `{"model":"resnet-18","config":{"depths":[1,1,1,1]},"batch":` + batch + `}`
		snap := into[Snapshot](t, c.post("/v1/predictions/snapshot", body), http.StatusCreated)
		ids, peaks = append(ids, snap.ID), append(peaks, snap.Devices[0].Peak.Requested)
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			top := into[recording.Top](t, c.get("/v1/snapshots/"+ids[i%4]+"/top"), http.StatusOK)
			if top.LiveBytes != peaks[i%4] {
				t.Errorf("%d live, want %d", top.LiveBytes, peaks[i%4])
			}
		})
	}
	all.Wait()
	l := c.s.library
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.books.held > 2<<20 {
		t.Errorf("%d bytes are held", l.books.held)
	}
}

// Snapshots without a single event take memory too: small uploads that unpack
// to many blocks stay within the budget.
func TestLibraryCountsBlocks(t *testing.T) {
	const budget = 32 << 20
	c := start(t, func(o *Options) { o.SnapshotMemory = budget })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 12 {
		snap := into[Snapshot](t, c.post("/v1/snapshots", manyBlocks(t, int64(1+i))), http.StatusCreated)
		into[recording.Top](t, c.get("/v1/snapshots/"+snap.ID+"/top"), http.StatusOK)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > budget {
		t.Errorf("%d bytes are held, the budget is %d", held, budget)
	}
}

// manyBlocks is a snapshot of a device that holds many blocks, packed.
func manyBlocks(t *testing.T, requested int64) string {
	t.Helper()
	tr := trace.New(0, trace.NewTables())
	seg := trace.Segment{Addr: 1 << 30, Size: 50_000 << 9}
	for i := range 50_000 {
		seg.Blocks = append(seg.Blocks, trace.Block{Addr: seg.Addr + uint64(i)<<9, Size: 512, Requested: requested, State: trace.Allocated})
	}
	tr.Final = []trace.Segment{seg}
	tr.Link()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if err := errors.Join(snapshot.Write(w, &snapshot.Snapshot{Devices: []*trace.Trace{tr}}), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"a.pickle": "a.pickle", "/etc/passwd": "passwd", `C:\runs\a b.pickle`: "a b.pickle", "../..": "..", "": "", "/": "", "a\x00\nb": "ab",
	} {
		if got := fileName(name); got != want {
			t.Errorf("%q is called %q, want %q", name, got, want)
		}
	}
}

// written is a snapshot of a device.
func written(t *testing.T, tr *trace.Trace) string {
	t.Helper()
	var file bytes.Buffer
	if err := snapshot.Write(&file, &snapshot.Snapshot{Devices: []*trace.Trace{tr}}); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// A recording that cannot be replayed is not the server's fault: nothing that is
// asked of it is an internal error.
func TestNotReplayable(t *testing.T) {
	c := start(t)
	for name, tr := range map[string]*trace.Trace{
		"no segments":    onDevice(trace.Event{Action: trace.Alloc, Addr: 512, Size: 1024, ID: 0}),
		"outside of any": onDevice(trace.Event{Action: trace.SegmentAlloc, Addr: 1 << 30, Size: 2 << 20, ID: trace.None}, trace.Event{Action: trace.Alloc, Addr: 512, Size: 1024, ID: 0}),
		"freed twice":    onDevice(trace.Event{Action: trace.FreeCompleted, Addr: 512, Size: 1024, ID: 0}, trace.Event{Action: trace.FreeCompleted, Addr: 512, Size: 1024, ID: 0}),
	} {
		r := c.post("/v1/snapshots", written(t, tr))
		if r.StatusCode == http.StatusUnprocessableEntity {
			continue // it is refused as a whole
		}
		at := "/v1/snapshots/" + into[Snapshot](t, r, http.StatusCreated).ID
		for _, path := range []string{"/replay", "/replay?limit_bytes=4194304", "/segments", "/segments?at=peak", "/timeline", "/top", "/events", "/flame", "/stretch?to=1"} {
			if r := c.get(at + path); r.StatusCode >= 500 {
				t.Errorf("%s: %s: %s %s", name, path, r.Status, r.text)
			}
		}
		if r := c.get(at + "/replay"); r.StatusCode == http.StatusUnprocessableEntity && !strings.Contains(r.text, "replay") {
			t.Errorf("%s: %s", name, r.text)
		}
	}
}

// A file that is small as it is sent may hold more events than there is memory for, with
// what is computed of them. It is refused as soon as that is clear.
func TestMoreEventsThanMemory(t *testing.T) {
	const budget = 64 << 20
	c := start(t, func(o *Options) { o.SnapshotMemory = budget })
	file := written(t, onDevice(slices.Repeat([]trace.Event{{Action: trace.SegmentAlloc, Addr: 1 << 30, Size: 2 << 20, ID: trace.None}}, 1_000_000)...))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(file)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	got := into[huma.ErrorModel](t, c.post("/v1/snapshots", packed.String()), http.StatusRequestEntityTooLarge)
	if !strings.Contains(got.Detail, "events") {
		t.Errorf("%+v", got)
	}
	if list := into[Snapshots](t, c.get("/v1/snapshots"), http.StatusOK); len(list.Snapshots) != 0 {
		t.Errorf("it is kept: %+v", list)
	}
}

func onDevice(events ...trace.Event) *trace.Trace {
	t := trace.New(0, trace.NewTables())
	t.Events = events
	return t
}
