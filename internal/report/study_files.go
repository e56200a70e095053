package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"memorymark/internal/draw"
	"memorymark/internal/recording"
	"memorymark/internal/snapshot"
	"memorymark/internal/study"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

// Folder is where the files of a study go: a folder on a disk, or an archive on
// its way to a client. Its methods may be called at the same time.
type Folder interface {
	// Write makes a file of what a function writes, whole or not at all.
	Write(name string, content func(io.Writer) error) error
	// Read returns what was written; fs.ErrNotExist if nothing was.
	Read(name string) ([]byte, error)
}

// StudyFiles are the files of a whole study: a snapshot and a picture for each
// cell, summaries as text, and one page that holds all of it.
type StudyFiles struct {
	Plan   *study.Plan
	Folder Folder
	// PageAlone leaves out all but what the page is made of.
	PageAlone bool
}

// Keep writes what a result does not hold: the snapshot of a cell, and its
// picture. It is meant for study.Options.
func (f *StudyFiles) Keep(c study.Cell, p *study.Profile, r *study.Result) error {
	if p.Trace == nil {
		return nil
	}
	if !f.PageAlone {
		for _, name := range f.Plan.SnapshotFiles(c) {
			if err := f.Folder.Write(name, func(w io.Writer) error {
				return snapshot.Write(w, &snapshot.Snapshot{Devices: []*trace.Trace{p.Trace}})
			}); err != nil {
				return err
			}
		}
	}
	t := *p.Trace
	t.Marks = study.PhaseMarks(&t)
	tl, err := timeline.Build(&t, study.Classified(c.Workload, p.Trace), recording.New(p.Trace).Levels(), timeline.Options{})
	if err != nil {
		return err
	}
	style := draw.Style{Light: true, Title: CellTitle(r)}
	return f.Folder.Write(study.PictureFile(c), func(w io.Writer) error { return draw.TimelinePNG(w, tl, style) })
}

// Finish writes the summaries and the page, and returns the study and the names
// of all its files.
func (f *StudyFiles) Finish(cells []study.Cell, results []*study.Result) (*Study, []string, error) {
	s, err := f.study(cells, results)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	if !f.PageAlone {
		names = f.names(cells, results)
		if err := f.writeTexts(s); err != nil {
			return nil, nil, err
		}
	}
	return s, names, f.Folder.Write(study.IndexFile, func(w io.Writer) error { return s.WriteHTML(w, names) })
}

// study puts the results together with the pictures next to them.
func (f *StudyFiles) study(cells []study.Cell, results []*study.Result) (*Study, error) {
	findings, err := study.Findings(cells, results)
	if err != nil {
		return nil, err
	}
	out := make([]StudyCell, len(cells))
	for i, finding := range findings {
		picture, err := f.Folder.Read(study.PictureFile(cells[i]))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read picture: %w", err)
		}
		out[i] = StudyCell{finding, picture}
	}
	activations, err := f.Plan.Activations()
	if err != nil {
		return nil, err
	}
	return NewStudy(f.Plan, out, activations), nil
}

// names are those of all files of a study.
func (f *StudyFiles) names(cells []study.Cell, results []*study.Result) []string {
	out := []string{study.IndexFile, study.PeaksFile, study.MixedFile, study.ActivationFile, study.LargestFile}
	for i, c := range cells {
		if results[i].Recorded() {
			out = append(append(out, f.Plan.SnapshotFiles(c)...), study.PictureFile(c))
		}
	}
	return out
}

// fileWidth is how wide the text of a file may be.
const fileWidth = 120

func (f *StudyFiles) writeTexts(s *Study) error {
	for _, text := range []struct {
		name  string
		write func(io.Writer, int) error
	}{
		{study.PeaksFile, s.WritePeaks},
		{study.MixedFile, s.WriteMixed},
		{study.ActivationFile, s.WriteActivations},
		{study.LargestFile, s.WriteLargest},
	} {
		if err := f.Folder.Write(text.name, func(w io.Writer) error { return WriteText(w, fileWidth, text.write) }); err != nil {
			return err
		}
	}
	return nil
}
