package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Damage is something stored that is not as it was written. The engine keeps a
// checksum with everything, and finds it when it reads.
type Damage struct {
	Stream string // of the engine, which docs/jobs.md describes
	Record uint64 // its number in the stream, 0 if it is not one record
	What   string
}

func (d Damage) String() string {
	if d.Record == 0 {
		return d.Stream + ": " + d.What
	}
	return fmt.Sprintf("%s, record %d: %s", d.Stream, d.Record, d.What)
}

// Checked is what a look at everything that is stored found.
type Checked struct {
	Records int
	Damages []Damage
}

// Verify has an engine read everything that is stored in a folder. It works on a
// copy in the folder for temporary files, because an engine that finds damage in its
// files changes them.
func Verify(dir string) (c Checked, err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return c, nil // nothing was ever stored
	}
	image, err := os.MkdirTemp("", "memorymark-verify-*")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(image)) }()
	if err := os.CopyFS(filepath.Join(image, "jobs"), os.DirFS(dir)); err != nil {
		return c, fmt.Errorf("copy %s to check it (TMPDIR says where to): %w", dir, err)
	}
	config, err := Config{Dir: filepath.Join(image, "jobs")}.withDefaults()
	if err != nil {
		return c, err
	}
	e, err := startEngine(config, func(string) {})
	if err != nil {
		return c, err
	}
	defer e.stop()
	conn, err := nats.Connect("", nats.InProcessServer(e.server))
	if err != nil {
		return c, err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return c, err
	}
	k := &check{js: js, engine: e}
	if err := k.started(context.Background()); err != nil {
		return c, err
	}
	if _, err := createLayout(context.Background(), js, 1, config.Lease); err != nil {
		return c, err
	}
	err = k.records(context.Background())
	return k.Checked, err
}

// check is one look at what an engine has.
type check struct {
	Checked
	js     jetstream.JetStream
	engine *engine
	record func(*jetstream.RawStreamMsg) // gets every record of a job; may be nil
}

func (c *check) report(stream string, record uint64, format string, args ...any) {
	c.Damages = append(c.Damages, Damage{stream, record, fmt.Sprintf(format, args...)})
}

// started looks at what the engine did when it started: it does not take up streams
// whose settings do not fit their checksum, and it cuts off a file at the first record
// that it cannot read, if it has to read the file.
func (c *check) started(ctx context.Context) error {
	for _, stream := range c.engine.streams {
		if _, err := c.js.Stream(ctx, stream); errors.Is(err, jetstream.ErrStreamNotFound) {
			c.report(stream, 0, "its settings do not fit their checksum; it is set up again, with its records")
		} else if err != nil {
			return fmt.Errorf("look at %s: %w", stream, err)
		}
	}
	c.cut(true)
	return nil
}

// cut names files that the engine has cut off since it started. It never does that
// otherwise: what it compacts is another file, and what it removes is gone.
func (c *check) cut(starting bool) {
	for path, before := range c.engine.files {
		stream, file := filepath.Base(filepath.Dir(filepath.Dir(path))), filepath.Base(path)
		after, err := os.Stat(path)
		switch {
		case err == nil && os.SameFile(before, after) && after.Size() < before.Size():
			c.report(stream, 0, "%d of %d bytes of its file %s cannot be read and are left out; if power failed, they may be what was being written", before.Size()-after.Size(), before.Size(), file)
			delete(c.engine.files, path)
		case errors.Is(err, fs.ErrNotExist) && starting && !expired(stream, before):
			c.report(stream, 0, "its file %s of %d bytes cannot be read and is left out", file, before.Size())
		}
	}
}

// expired reports whether all that a file holds may be too old to be kept.
func expired(stream string, file fs.FileInfo) bool {
	return stream == eventStream && time.Since(file.ModTime()) > maxEventAge
}

// records reads every record that is stored on the disk.
func (c *check) records(ctx context.Context) error {
	for _, name := range []string{queueStream, eventStream, "KV_" + recordBucket, "KV_" + resultBucket} {
		s, err := c.js.Stream(ctx, name)
		if err == nil {
			err = c.stream(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("check %s: %w", name, err)
		}
	}
	c.cut(false)
	return nil
}

// stream reads the records of a stream. Those that cannot be read are missing, and
// were not deleted meanwhile.
func (c *check) stream(ctx context.Context, s jetstream.Stream) error {
	info, err := s.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return err
	}
	missing, err := c.read(ctx, s, info.State)
	if err != nil || len(missing) == 0 {
		return err
	}
	if info, err = s.Info(ctx, jetstream.WithDeletedDetails(true)); err != nil {
		return err
	}
	for _, n := range missing {
		if _, deleted := slices.BinarySearch(info.State.Deleted, n); !deleted && n >= info.State.FirstSeq {
			c.report(info.Config.Name, n, "it cannot be read any more")
		}
	}
	return c.jobs(ctx, s)
}

// jobs names the jobs of which the last record in a stream cannot be read.
func (c *check) jobs(ctx context.Context, s jetstream.Stream) error {
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		_, err := s.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			c.report(info.Config.Name, 0, "%s has lost its last record", subject)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// readers is how many records are read at a time.
const readers = 8

// read reads the records of a stream, and returns the numbers of those that the engine
// cannot read.
func (c *check) read(ctx context.Context, s jetstream.Stream, state jetstream.StreamState) (missing []uint64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	numbers := make(chan uint64)
	var mu sync.Mutex
	var reading sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for n := range numbers {
				m, err := s.GetMsg(ctx, n)
				mu.Lock()
				switch {
				case err == nil && !fits(m):
					c.report(s.CachedInfo().Config.Name, n, "it is not what was written")
				case err == nil:
					if c.Records++; c.record != nil && strings.HasPrefix(m.Subject, recordSubject) {
						c.record(m)
					}
				case errors.Is(err, jetstream.ErrMsgNotFound):
					missing = append(missing, n)
				default:
					cancel(err)
				}
				mu.Unlock()
			}
		})
	}
	deleted := state.Deleted
	for n := state.FirstSeq; n <= state.LastSeq && state.Msgs > 0 && ctx.Err() == nil; n++ {
		if len(deleted) > 0 && deleted[0] == n {
			deleted = deleted[1:]
			continue
		}
		numbers <- n
	}
	close(numbers)
	reading.Wait()
	slices.Sort(missing)
	return missing, context.Cause(ctx)
}

// fits reports whether a record is under a subject that it can have been stored
// under. The engine's checksum covers the subject and the data as one text, and not
// where the one ends and the other begins.
func fits(m *jetstream.RawStreamMsg) bool {
	marks := m.Header.Get("KV-Operation") != "" || m.Header.Get("Nats-Marker-Reason") != "" // a deletion
	if id, ok := strings.CutPrefix(m.Subject, recordSubject); ok {
		var j Job
		return isID(id) && (marks || json.Unmarshal(m.Data, &j) == nil && j.ID == id)
	}
	if key, ok := strings.CutPrefix(m.Subject, "$KV."+resultBucket+"."); ok {
		id, attempt, _ := strings.Cut(key, ".")
		_, err := strconv.Atoi(attempt)
		return isID(id) && err == nil && (marks || json.Valid(m.Data) || len(bytes.TrimSpace(m.Data)) == 0)
	}
	if id, ok := strings.CutPrefix(m.Subject, eventSubject); ok {
		return isID(id) && json.Valid(m.Data)
	}
	rest, ok := strings.CutPrefix(m.Subject, queueSubject)
	card, key, _ := strings.Cut(rest, ".")
	return ok && cardID.MatchString(card) && len(key) == keyLength && isID(string(m.Data))
}

func isID(text string) bool {
	_, ok := parseID(text)
	return ok
}

// verify names in the log what was damaged before this server started, when the engine
// read its files, and then while it reads everything in the background.
func (q *Queue) verify(ctx context.Context, c *check) {
	defer q.verifying.Store(false)
	if err := c.records(ctx); err != nil {
		if ctx.Err() == nil {
			q.config.Log.Warn("look for damage", "error", err)
		}
		return
	}
	q.nameDamage(c.Damages)
	q.index.load.Do(func() { close(q.index.loaded) })
}

// recover puts a record into the index. The engine does not end the list of all
// records if it cannot read one of them, so that followRecords never learns that it
// has them all.
func (q *Queue) recover(m *jetstream.RawStreamMsg) {
	if r, err := decodeRecord(m.Data, m.Sequence, m.Time); err == nil && r.ID != "" {
		q.index.put(r)
	}
}

// nameDamage says what is damaged. If records are, then which of those that are left was its
// job's last is not known.
func (q *Queue) nameDamage(damages []Damage) {
	q.repairing.Lock()
	defer q.repairing.Unlock()
	for _, d := range damages {
		q.config.Log.Error("the history was damaged on the disk; if it matters, restore a backup", "what", d.String())
		q.lostRecords = q.lostRecords || d.Stream == "KV_"+recordBucket
	}
}
