package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"memorymark/internal/testmachine"
)

// TestFlippedBits flips a bit in ten places of what an engine stored, when it was
// stopped and when it was killed. Either all is as it was, or the damage is named, by
// Verify and by the server that opens it.
func TestFlippedBits(t *testing.T) {
	stopped, killed, before := storeSome(t)
	for how, image := range map[string]string{"stopped": stopped, "killed": killed} {
		if c, err := Verify(image); err != nil || len(c.Damages) != 0 || c.Records == 0 {
			t.Fatalf("undamaged: %+v, %v", c, err)
		}
		files := contents(t, image)
		if len(files) < 10 {
			t.Fatalf("there are only %d files", len(files))
		}
		for range 10 {
			file := slices.Sorted(maps.Keys(files))[rand.IntN(len(files))]
			flip(t, how, image, files, before, file, rand.IntN(len(files[file])), rand.IntN(8))
		}
	}
}

// TestFlippedSubjectLength flips bits of the length of a subject, which no checksum
// covers, in a file of each stream.
func TestFlippedSubjectLength(t *testing.T) {
	stopped, killed, before := storeSome(t)
	const behindLength = 2 // the length is before the subject
	for how, image := range map[string]string{"stopped": stopped, "killed": killed} {
		files, flipped := contents(t, image), 0
		for file, data := range files {
			if !strings.HasSuffix(file, ".blk") {
				continue
			}
			for _, prefix := range []string{"$KV.memorymark_", "memorymark."} {
				at := bytes.LastIndex(data, []byte(prefix))
				if at < 0 {
					continue
				}
				for _, bit := range []int{0, 3} {
					flip(t, how, image, files, before, file, at-behindLength, bit)
					flipped++
				}
			}
		}
		if flipped < 8 {
			t.Errorf("only %d bits were flipped", flipped)
		}
	}
}

// flip flips a bit in a copy of what is stored, and has it checked and opened.
func flip(t *testing.T, how, image string, files map[string][]byte, before map[string]string, file string, at, bit int) {
	t.Helper()
	name := strings.TrimPrefix(file, image)
	t.Run(fmt.Sprintf("%s, bit %d of byte %d of %s", how, bit, at, name), func(t *testing.T) {
		bad := bytes.Clone(files[file])
		bad[at] ^= 1 << bit
		damaged := filepath.Join(t.TempDir(), "jobs")
		if err := os.CopyFS(damaged, os.DirFS(image)); err != nil {
			t.Fatal(err)
		}
		testmachine.WriteFile(t, filepath.Join(damaged, name), bad)
		as := contents(t, damaged)
		found, err := Verify(damaged)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(as, contents(t, damaged), bytes.Equal) {
			t.Error("the check changed what it looked at")
		}
		log, now := openDamaged(t, damaged)
		for id, was := range before {
			if now[id] != was && (len(found.Damages) == 0 || !strings.Contains(log, "damaged on the disk")) {
				t.Errorf("%s was %s and is %s; the check says %v, and the log:\n%s", id, was, now[id], found.Damages, log)
			}
		}
	})
}

// storeSome stores jobs, and returns what an engine that was stopped leaves, what one
// that was killed does, and what can be read there of each job.
func storeSome(t *testing.T) (stopped, killed string, jobs map[string]string) {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	q, err := Open(ctx, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	for i := range 12 {
		b.submit(fmt.Sprintf(`{"n":%d}`, i))
	}
	h := b.link()
	for range 8 {
		l := b.take(h)
		b.must(l.say(ctx, `"it goes well"`))
		b.must(l.succeed(ctx, `{"found":"`+strings.Repeat("x", 300)+`"}`))
	}
	jobs = readable(t, q)
	killed = t.TempDir()
	b.must(os.CopyFS(filepath.Join(killed, "jobs"), os.DirFS(dir)))
	q.Close()
	return dir, filepath.Join(killed, "jobs"), jobs
}

// readable is what can be read of each job: its state, result and events.
func readable(t *testing.T, q *Queue) map[string]string {
	t.Helper()
	ctx := t.Context()
	page, err := q.List(ctx, Filter{Limit: MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, j := range page.Jobs {
		result, err := q.Result(ctx, j.ID)
		if err != nil && !errors.Is(err, ErrNoResult) {
			result = json.RawMessage(err.Error())
		}
		out[j.ID] = fmt.Sprintf("%s %s %s", j.Payload, j.State, result)
		if events, err := q.Events(ctx, j.ID, 0, 10); err != nil {
			out[j.ID] += err.Error()
		} else {
			out[j.ID] += fmt.Sprint(len(events.Events))
		}
	}
	return out
}

// openDamaged opens a folder, and returns the log and what can be read.
func openDamaged(t *testing.T, dir string) (text string, jobs map[string]string) {
	t.Helper()
	var log safeBuffer
	q, err := Open(t.Context(), Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := q.index.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for q.verifying.Load() {
		if _, err := q.Stats(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return log.String(), readable(t, q)
}

// safeBuffer is a buffer that several may write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(data)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// contents are the files of a folder.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if len(data) > 0 {
			files[path] = data
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A record that cannot be read does not keep others from being served, nor jobs from
// being done.
func TestDamagedRecord(t *testing.T) {
	stopped, _, before := storeSome(t)
	block := filepath.Join(stopped, "jetstream", "$G", "streams", "KV_"+recordBucket, "msgs", "1.blk")
	data := testmachine.ReadFile(t, block)
	data[bytes.LastIndex(data, []byte("succeeded"))] ^= 1
	testmachine.WriteFile(t, block, data)
	log, now := openDamaged(t, stopped)
	if len(now) != len(before)-1 || !strings.Contains(log, "record ") {
		t.Errorf("%d of %d jobs are listed; the log says\n%s", len(now), len(before), log)
	}
	q := openEmbedded(t, func(c *Config) { c.Dir = stopped })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	j := Job{ID: newID(q.now()).String(), Card: "t4", Key: "k", Payload: json.RawMessage("{}"), State: Queued}
	other, err := encode(j)
	b.must(err)
	_, err = q.records.Create(ctx, j.ID, other)
	b.must(err)
	b.eventually("what another server does is heard of", func() bool {
		return slices.ContainsFunc(q.index.unfinished(Queued), func(r record) bool { return r.ID == j.ID })
	})
	h := newHand(ctx, t, q, "t4")
	for range 5 {
		l, err := h.take(ctx)
		if err != nil || l == nil {
			t.Fatalf("took %v, %v", l, err)
		}
		if err := l.succeed(ctx, "1"); err != nil {
			t.Error(err)
		}
	}
}
