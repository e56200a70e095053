package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// history is what a folder holds: jobs of every state, and results.
type history struct {
	dir   string
	jobs  map[string]Job
	files map[string][]byte // the engine's, by their names in dir
}

// makeHistory makes one and closes it.
func makeHistory(t *testing.T) *history {
	t.Helper()
	h := &history{dir: t.TempDir(), jobs: make(map[string]Job), files: make(map[string][]byte)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	q, err := Open(ctx, Config{Dir: h.dir})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	l := b.link()
	for i := range 12 {
		j := b.submit(fmt.Sprintf(`{"model":"bert","batch":%d}`, i))
		switch i % 4 {
		case 0, 1:
			lease := b.take(l)
			b.must(lease.Progress(json.RawMessage(`{"probe":1}`)))
			b.must(lease.Succeed(ctx, json.RawMessage(fmt.Sprintf(`{"largest":%d}`, i))))
		case 2:
			_, err := q.Cancel(ctx, j.ID, "")
			b.must(err)
		case 3:
			b.must(b.take(l).Fail(ctx, "it did not fit"))
		}
		h.jobs[j.ID] = *b.get(j.ID)
	}
	j := b.submit(`{"model":"waits"}`)
	h.jobs[j.ID] = *j
	q.Close()
	h.read(t)
	return h
}

func (h *history) read(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(h.dir, path)
		h.files[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// copyTo writes the files to a folder.
func (h *history) copyTo(t *testing.T, dir string) {
	t.Helper()
	for name, data := range h.files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// open opens a folder and returns what it logs.
func (h *history) open(t *testing.T, dir string) (*Queue, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	q := openEmbedded(t, func(c *Config) {
		c.Dir, c.Lease, c.Log = dir, DefaultLease, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	if err := q.index.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := q.repair(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return q, &log
}

// block is the name of the file of a stream's records.
func (h *history) block(t *testing.T, stream string) string {
	t.Helper()
	for name := range h.files {
		if strings.Contains(name, filepath.Join(stream, "msgs")) && strings.HasSuffix(name, ".blk") {
			return name
		}
	}
	t.Fatalf("there is no block of %s", stream)
	return ""
}

// TestVerifyReadsEverything holds our reading of the engine's files to what it
// wrote.
func TestVerifyReadsEverything(t *testing.T) {
	h := makeHistory(t)
	found, err := Verify(h.dir)
	if err != nil || len(found.Damages) != 0 || found.Records < 3*len(h.jobs) {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestFlippedBit flips a bit anywhere in what is stored, and opens it: every job
// is as it was, and a flip in a record is named.
func TestFlippedBit(t *testing.T) {
	h := makeHistory(t)
	flips := 3
	for name, data := range h.files {
		for range flips {
			place, bit := rand.IntN(max(len(data), 1)), rand.IntN(8)
			if len(data) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d.%d", filepath.Base(name), place, bit), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				h.copyTo(t, dir)
				damaged := bytes.Clone(data)
				damaged[place] ^= 1 << bit
				if err := os.WriteFile(filepath.Join(dir, name), damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				q, log := h.open(t, dir)
				if strings.HasSuffix(name, ".blk") && !strings.Contains(log.String(), filepath.Base(filepath.Dir(filepath.Dir(name)))) {
					t.Errorf("%s was damaged, and the log says %q", name, log)
				}
				for id, want := range h.jobs {
					got, err := q.Get(t.Context(), id)
					if err != nil || got.State != want.State || !got.Ended.Equal(want.Ended) {
						t.Errorf("%s in %s: %+v, %v, want %+v", id, name, got, err, want)
					}
					if want.State == Succeeded {
						if _, err := q.Result(t.Context(), id); err != nil {
							t.Errorf("%s in %s: %v", id, name, err)
						}
					}
				}
				h.checkQueue(t, q)
			})
		}
	}
}

// TestFlippedSubjectLength flips each bit of the length of each subject, which no
// checksum covers.
func TestFlippedSubjectLength(t *testing.T) {
	h, blocks := makeHistory(t), 0
	for name, data := range h.files {
		stream := filepath.Base(filepath.Dir(filepath.Dir(name)))
		if !strings.HasSuffix(name, ".blk") {
			continue
		}
		number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ".blk"))
		if err != nil {
			t.Fatal(err)
		}
		blocks++
		var places []int
		whole, err := newBlock(stream, number, data)
		if err != nil {
			t.Fatal(err)
		}
		whole.each(func(r stored) { places = append(places, r.at+recordHeader-2) }, func(gap) bool { return false })
		for _, place := range places {
			for bit := range 16 {
				damaged := bytes.Clone(data)
				damaged[place+bit/8] ^= 1 << (bit % 8)
				b, err := newBlock(stream, number, damaged)
				if err != nil {
					t.Fatal(err)
				}
				b.each(func(stored) {}, b.correct)
				if !bytes.Equal(damaged, data) {
					t.Errorf("%s: bit %d of the length at %d is not flipped back", name, bit, place)
				}
			}
		}
	}
	if blocks == 0 {
		t.Error("there are no blocks")
	}
}

// TestLostSector blanks a part of a block that no search for a bit brings back.
// What it held is named, none of it is done again, and all else is there. The
// last record is spared: one that is not whole may have been in the midst of
// being written when the power failed, and nobody was told that it is stored.
func TestLostSector(t *testing.T) {
	h := makeHistory(t)
	for _, c := range []struct {
		stream string
		length int
	}{{"KV_" + recordBucket, 40}, {"KV_" + recordBucket, 700}, {"KV_" + resultBucket, 30}, {queueStream, 20}, {eventStream, 20}} {
		name := h.block(t, c.stream)
		data := h.files[name]
		last := lastRecord(t, c.stream, name, data)
		for range 6 {
			place := rand.IntN(max(last-c.length, 1))
			t.Run(fmt.Sprintf("%s/%d+%d", c.stream, place, c.length), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				h.copyTo(t, dir)
				damaged := bytes.Clone(data)
				clear(damaged[place:min(place+c.length, len(damaged))])
				if err := os.WriteFile(filepath.Join(dir, name), damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				q, log := h.open(t, dir)
				if !strings.Contains(log.String(), c.stream) {
					t.Errorf("the log says %q", log)
				}
				h.checkAfterLoss(t, q, log.String())
			})
		}
	}
}

// lastRecord is where the last record of a block begins.
func lastRecord(t *testing.T, stream, name string, data []byte) (at int) {
	t.Helper()
	number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ".blk"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBlock(stream, number, data)
	if err != nil {
		t.Fatal(err)
	}
	b.each(func(r stored) { at = r.at }, func(gap) bool { return false })
	return at
}

// checkAfterLoss checks that no job that had ended is done again, and that jobs
// are as they were unless it was said that they are not.
func (h *history) checkAfterLoss(t *testing.T, q *Queue, log string) {
	t.Helper()
	touched := 0
	for id, want := range h.jobs {
		got, err := q.Get(t.Context(), id)
		switch {
		case err == nil && got.State == want.State:
		case err == nil && got.State == Failed && got.Reason != "":
			touched++
		case errors.Is(err, ErrNotFound) && want.State.Ended():
			touched++
		default:
			t.Errorf("%s: %+v, %v, want %+v", id, got, err, want)
		}
		if _, err := q.Result(t.Context(), id); got != nil && got.State == Succeeded && err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoResult) {
			t.Errorf("the result of %s: %v", id, err)
		}
	}
	if touched > 4 {
		t.Errorf("%d jobs are lost; the log says %s", touched, log)
	}
}

// checkQueue checks that the job that waits is taken, and no other.
func (h *history) checkQueue(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	l := b.link()
	if j := b.take(l).Job(); h.jobs[j.ID].State != Queued {
		t.Errorf("taken: %+v", j)
	}
	b.idle(l)
}
