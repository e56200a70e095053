package report

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"

	"memorymark/internal/study"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// memory is a folder that is nowhere. Writing the file named full fails.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
	full  string
}

var errFull = errors.New("no space left")

func (m *memory) Write(name string, content func(io.Writer) error) error {
	var b bytes.Buffer
	if err := content(&b); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == m.full {
		return errFull
	}
	m.files[name] = b.Bytes()
	return nil
}

func (m *memory) Read(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.files[name]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// make makes the files of a small study.
func (m *memory) make(t *testing.T, alone bool) ([]string, error) {
	t.Helper()
	card := workloadtest.Card(t, "t4")
	plan := &study.Plan{Models: []string{"lm-small"}, Contexts: []int64{32}, Batch: 1, Mixed: workload.AMPFP16, Card: card, Steps: 1}
	cells, err := plan.Cells()
	if err != nil {
		t.Fatal(err)
	}
	m.files = make(map[string][]byte)
	files := &StudyFiles{Plan: plan, Folder: m, PageAlone: alone}
	results, err := study.Run(t.Context(), study.Predictor{}, cells, study.Options{Keep: files.Keep})
	if err != nil {
		return nil, err
	}
	_, names, err := files.Finish(cells, results)
	return names, err
}

func TestStudyFiles(t *testing.T) {
	var m memory
	names, err := m.make(t, false)
	slices.Sort(names)
	if written := slices.Sorted(maps.Keys(m.files)); err != nil || !slices.Equal(names, written) {
		t.Errorf("wrote %v, named %v, %v", written, names, err)
	}
	for _, name := range []string{"small_ctx32_training_snapshot.pickle", "small_ctx32_training_fp32_snapshot.pickle", study.MixedFile} {
		if len(m.files[name]) == 0 || bytes.ContainsRune(m.files[study.MixedFile], '\x1b') {
			t.Errorf("%s has %d bytes", name, len(m.files[name]))
		}
	}
}

func TestStudyPageAlone(t *testing.T) {
	var m memory
	names, err := m.make(t, true)
	if err != nil || len(names) != 0 || len(m.files) != 5 || len(m.files[study.IndexFile]) == 0 { // and 4 pictures
		t.Errorf("%v beside %v, %v", names, slices.Sorted(maps.Keys(m.files)), err)
	}
}

func TestStudyInFullFolder(t *testing.T) {
	for _, name := range []string{"small_ctx32_forward_snapshot.pickle", study.IndexFile} {
		m := memory{full: name}
		if _, err := m.make(t, false); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
