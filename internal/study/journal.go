package study

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"memorymark/internal/evidence"
)

// Journal is a file of finished cells, a line of JSON for each. It only grows,
// and each line is written at once: a run that is killed loses the cells that
// were running, and nothing else.
type Journal struct {
	program string // whose results count
	lock    sync.Mutex
	file    *os.File
	results map[string]*Result // by key
	latest  map[string]string  // keys by the names of cells: whose the files are
}

// entry is a line of a journal.
type entry struct {
	Key    string  `json:"key"`
	Name   string  `json:"name,omitempty"`
	Result *Result `json:"result"`
}

// OpenJournal reads a journal, or begins one. Results of another version of
// the program do not count: it may know better.
func OpenJournal(path, program string) (*Journal, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	j := &Journal{program: program, results: make(map[string]*Result), latest: make(map[string]string)}
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) == nil && e.Result != nil { // a line may have been cut off
			j.put(e)
		}
	}
	if j.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		if _, err := j.file.WriteString("\n"); err != nil {
			return nil, fmt.Errorf("write journal: %w", err)
		}
	}
	return j, nil
}

// put takes an entry. One of the same name before it is void: its files were
// written over.
func (j *Journal) put(e entry) {
	if old, ok := j.latest[e.Name]; ok && old != e.Key {
		delete(j.results, old)
	}
	if e.Name != "" {
		j.latest[e.Name] = e.Key
	}
	j.results[e.Key] = e.Result
}

// Close closes the file, to which every line was already written.
func (j *Journal) Close() { j.file.Close() }

// find returns the result of a cell, nil if there is none.
func (j *Journal) find(c Cell, engine evidence.Engine) *Result {
	if j == nil {
		return nil
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	return j.results[j.key(c, engine)]
}

// add keeps a result. One that only says that something went wrong is worth
// another try.
func (j *Journal) add(c Cell, r *Result) error {
	if j == nil || r.Error != "" {
		return nil
	}
	j.lock.Lock()
	defer j.lock.Unlock()
	e := entry{j.key(c, r.Engine), c.Name, r}
	j.put(e)
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// key names a cell by everything that its result depends on.
func (j *Journal) key(c Cell, engine evidence.Engine) string {
	data, err := json.Marshal([]any{j.program, engine, c.Card, c.Device, c.Name, c.Warmup, c.Steps, c.Workload})
	if err != nil {
		panic(fmt.Sprintf("study: a workload that is no JSON: %v", err)) // it was read from JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}
