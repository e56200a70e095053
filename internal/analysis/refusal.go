package analysis

import (
	"errors"
	"fmt"

	"memorymark/internal/bytesize"
	"memorymark/internal/gpu"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
)

// TooSmallError says that not even the smallest batch trains, and what would
// help.
type TooSmallError struct {
	Card    *gpu.Card
	Batch   int64 // the smallest
	Limit   bytesize.Bytes
	Needs   bytesize.Bytes // reserved at that batch
	Largest predict.Part   // the largest cause
	Helps   []ChangeSet    // the smallest sets of changes with which the batch of the question trains
	Remedy  string         // the same in a sentence
	Answer  *Answer        // the same at length
}

func (e *TooSmallError) Error() string {
	if e.Remedy == "" {
		return e.reason()
	}
	return e.reason() + "; " + e.Remedy
}

func (e *TooSmallError) reason() string {
	return fmt.Sprintf("batch %d, the smallest, does not train on %s: it needs %v, and PyTorch may use %v; the largest part is %s, %v",
		e.Batch, gpu.WithArticle(e.Card.Name), e.Needs, e.Limit, e.Largest.Name, e.Largest.Bytes)
}

// NothingFitsError says that not even the smallest batch trained.
type NothingFitsError struct {
	Batch   int64
	Device  string
	Failure *measure.Failure
	Answer  *Answer // the same at length
}

func (e *NothingFitsError) Error() string {
	return fmt.Sprintf("batch %d, the smallest, does not train on this %s: %s: %s", e.Batch, e.Device, e.Failure.Summary(), e.Failure.Message)
}

// Refusal is the answer in which no batch trains, nil for any other error.
func Refusal(err error) *Answer {
	var small *TooSmallError
	var nothing *NothingFitsError
	switch {
	case errors.As(err, &small):
		return small.Answer
	case errors.As(err, &nothing):
		return nothing.Answer
	}
	return nil
}

// whyTooSmall explains why nothing fits.
func (p *planner) whyTooSmall() (*TooSmallError, error) {
	s, err := p.run.Process(p.unit())
	if err != nil {
		return nil, err
	}
	return &TooSmallError{Card: p.Card, Batch: p.unit(), Limit: s.Limit, Needs: s.Peak().PeakReserved, Largest: largestPart(s)}, nil
}

// refuse is whyTooSmall with what would help, and the whole answer.
func (p *planner) refuse() error {
	e, err := p.whyTooSmall()
	if err != nil {
		return err
	}
	a := p.answer(0)
	for _, batch := range []int64{e.Batch, p.w.Batch} {
		if err := p.addResult(a, batch); err != nil {
			return err
		}
	}
	p.keepBack()
	a.compare(p.looked[p.w.Batch], Result{})
	a.note("limit", "%s", e.reason())
	if !a.CurrentFits && p.w.Program == nil { // it may fit, where it is no multiple of what is asked for
		if e.Helps, e.Remedy, err = p.remedies(); err != nil {
			return err
		}
		a.ToFit = e.Helps
		a.note("changes", "%s", e.Remedy)
	}
	e.Answer = a
	return e
}
