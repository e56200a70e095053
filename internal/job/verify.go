package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Damage is something stored that is not as it was written.
type Damage struct {
	File     string // in the folder
	Record   uint64 // its number in the stream, 0 if that cannot be read
	Job      string // whose it was, "" if that cannot be read
	Restored bool   // it is, or can be, exactly as it was
	Outcome  string // what becomes of it
}

func (d Damage) String() string {
	text := d.File
	if d.Record != 0 {
		text += fmt.Sprintf(", record %d", d.Record)
	}
	if d.Job != "" {
		text += ", job " + d.Job
	}
	return text + ": " + d.Outcome
}

// Checked is what a look at a folder found.
type Checked struct {
	Records int
	Damages []Damage
}

// Verify reads everything that the embedded engine has stored in a folder and
// compares it with its checksums. It changes nothing; opening the queue mends
// what can be.
func Verify(dir string) (Checked, error) {
	c := &check{dir: dir}
	err := c.run()
	return c.Checked, err
}

// mend is Verify, and repairs. lost says that records are gone, and that nobody
// knows which jobs they belonged to.
func mend(dir string) (found Checked, lost bool, err error) {
	c := &check{dir: dir, repair: true}
	err = c.run()
	return c.Checked, c.lost, err
}

// damagedDir is where files are kept as they were found, before they are mended.
const damagedDir = "damaged"

// check is one look at a folder.
type check struct {
	Checked
	dir    string
	repair bool
	lost   bool
}

func (c *check) run() error {
	streams, err := filepath.Glob(filepath.Join(c.dir, "jetstream", "*", "streams", "*"))
	if err != nil {
		return err
	}
	for _, folder := range streams {
		if err := errors.Join(c.settings(folder), c.consumers(folder), c.stream(folder)); err != nil {
			return fmt.Errorf("check %s: %w", folder, err)
		}
	}
	return nil
}

func (c *check) stream(folder string) error {
	files, err := os.ReadDir(filepath.Join(folder, "msgs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var numbers []int
	for _, f := range files {
		if n, err := strconv.Atoi(strings.TrimSuffix(f.Name(), ".blk")); err == nil && strings.HasSuffix(f.Name(), ".blk") {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if err := c.block(folder, n, i == len(numbers)-1); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) block(folder string, number int, last bool) error {
	stream, path := filepath.Base(folder), filepath.Join(folder, "msgs", fmt.Sprintf("%d.blk", number))
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	original := slices.Clone(data)
	b, err := newBlock(stream, number, data)
	if err != nil {
		return err
	}
	file := c.name(path)
	whole := true // what the engine knows of the block is still so
	b.each(func(stored) { c.Records++ }, func(g gap) (again bool) {
		d := Damage{File: file, Job: jobOf(g.subject), Record: g.number &^ (erased | tombstone)}
		again, kept := c.settle(b, g, &d, folder, last)
		whole = whole && kept
		if d.Outcome != "" {
			c.Damages = append(c.Damages, d)
		}
		return again
	})
	if !c.repair || slices.Equal(original, data) {
		return nil
	}
	if err := c.keep(file, original); err != nil {
		return err
	}
	if !whole { // its index counts records that are no more; the engine makes another
		if err := os.Remove(filepath.Join(folder, "msgs", "index.db")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return writeWhole(path, data)
}

// name is what a file is called in the folder.
func (c *check) name(path string) string {
	return strings.TrimPrefix(path, c.dir+string(filepath.Separator))
}

// settle decides about a gap: whether to look at the place again, and whether
// there is still a record where there was one.
func (c *check) settle(b *block, g gap, d *Damage, folder string, lastBlock bool) (again, kept bool) {
	records := filepath.Base(folder) == "KV_"+recordBucket
	switch {
	case b.correct(g):
		d.Restored, d.Outcome = true, "one bit was flipped; it is flipped back"
		if r, ok := b.record(g.at); ok {
			d.Job, d.Record = jobOf(r.subject), r.number&^(erased|tombstone)
		}
		return true, true
	case g.last && lastBlock && !g.readable:
		return false, true // it was being written when everything stopped; nobody was told of it
	case g.readable && g.room() > 0 && (d.Job != "" || !records) && b.takes(g.stored):
		b.replace(g, c.substitute(folder, g))
		d.Outcome = "it cannot be read any more; its place says so"
		return true, true
	}
	d.Record = g.before + 1
	d.Outcome = fmt.Sprintf("%d bytes cannot be read any more and are left out", g.length)
	c.lost = c.lost || records
	return b.erase(g), false
}

// substitute is what stands in the place of a record that cannot be read.
func (c *check) substitute(folder string, g gap) []byte {
	switch filepath.Base(folder) {
	case "KV_" + recordBucket:
		return failedRecord(c.earlier(folder, g), jobOf(g.subject), g.room())
	case eventStream:
		return []byte("0")
	default:
		return nil // blank: see Result, and repair for the queue
	}
}

// reasonDamaged is why a job has failed whose record cannot be read.
const reasonDamaged = "its record was damaged on the disk; ask again"

// failedRecord is the record of a job whose last record cannot be read. It says
// that the job has failed, and as much of an earlier record as there is room for.
func failedRecord(j Job, id string, room int) []byte {
	j.ID, j.State, j.Reason = id, Failed, reasonDamaged
	for _, shorten := range []func(){func() {}, func() { j.Reason = "damaged" }, func() { j.Labels = nil }, func() { j.Payload = nil }, func() { j.Key = "" }} {
		shorten()
		if data, err := json.Marshal(j); err == nil && len(data) <= room {
			return data
		}
	}
	return nil
}

// earlier is the last record of a gap's job that can be read.
func (c *check) earlier(folder string, g gap) (j Job) {
	paths, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
	if err != nil {
		return j
	}
	var newest uint64
	for _, path := range paths {
		number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".blk"))
		if err != nil {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		b, err := newBlock(filepath.Base(folder), number, data)
		if err != nil {
			continue
		}
		b.each(func(r stored) {
			var found Job
			if r.subject == g.subject && r.number > newest && r.number < g.number && json.Unmarshal(r.data, &found) == nil {
				newest, j = r.number, found
			}
		}, func(gap) bool { return false })
	}
	return j
}

// jobOf is the job in a subject, "" if there is none.
func jobOf(subject string) string {
	for _, prefix := range []string{"$KV." + recordBucket + ".", "$KV." + resultBucket + ".", eventSubject} {
		if rest, ok := strings.CutPrefix(subject, prefix); ok {
			job, _, _ := strings.Cut(rest, ".")
			if _, ok := parseID(job); ok {
				return job
			}
		}
	}
	return ""
}

// keep keeps a file as it was found.
func (c *check) keep(file string, data []byte) error {
	folder := filepath.Join(c.dir, damagedDir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, strings.NewReplacer("/", "_", "$", "").Replace(file)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// writeWhole replaces a file: whatever stops it, the old or the new one is there.
func writeWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".mended-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		os.Remove(f.Name())
		return err
	}
	return os.Rename(f.Name(), path)
}
