package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"memorymark/internal/invalid"
	"memorymark/internal/models"
)

// Lengths is the distribution of the samples of a dataset over their number of
// tokens.
type Lengths struct {
	counts []lengthCount // the shortest first
}

type lengthCount struct {
	length int64
	upTo   int64 // samples that are as long or shorter
}

// maxSamples is more than any dataset has.
const maxSamples = 1 << 40

// newLengths counts samples by length.
func newLengths(samples map[int64]int64) (*Lengths, error) {
	l := &Lengths{}
	for length, n := range samples {
		if length < 1 || length > maxSequence {
			return nil, fmt.Errorf("a sample has %d tokens; it must be 1 to %d", length, maxSequence)
		}
		if n < 1 || n > maxSamples {
			return nil, fmt.Errorf("%d samples have %d tokens; it must be 1 to %d samples", n, length, int64(maxSamples))
		}
		l.counts = append(l.counts, lengthCount{length, n})
	}
	if len(l.counts) == 0 {
		return nil, errors.New("it contains no samples")
	}
	slices.SortFunc(l.counts, func(a, b lengthCount) int { return cmp.Compare(a.length, b.length) })
	for i := range l.counts[1:] {
		l.counts[i+1].upTo += l.counts[i].upTo
	}
	if n := l.Samples(); n > maxSamples {
		return nil, fmt.Errorf("there are %d samples; it must be at most %d", n, int64(maxSamples))
	}
	return l, nil
}

// ReadLengths reads a file of lengths: what len() gave for each sample, one a
// line, or JSON.
func ReadLengths(data []byte) (*Lengths, error) {
	text := bytes.TrimSpace(data)
	if len(text) > 0 && (text[0] == '[' || text[0] == '{') {
		l := &Lengths{}
		return l, json.Unmarshal(text, l)
	}
	samples := make(map[int64]int64)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for line := 1; lines.Scan(); line++ {
		word := bytes.TrimSpace(lines.Bytes())
		if len(word) == 0 {
			continue
		}
		n, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil || n < 1 || n > maxSequence {
			return nil, fmt.Errorf("line %d is %q; it must be a whole number of tokens, 1 to %d", line, invalid.Shorten(word), maxSequence)
		}
		samples[n]++
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return newLengths(samples)
}

// UnmarshalJSON reads a list of lengths, or an object that has the number of
// samples by their length.
func (l *Lengths) UnmarshalJSON(data []byte) error {
	var list []int64
	samples := make(map[int64]int64)
	if json.Unmarshal(data, &list) == nil {
		for _, n := range list {
			samples[n]++
		}
	} else if json.Unmarshal(data, &samples) != nil {
		return errors.New(`it must be a list of whole numbers, or an object like {"128": 1000, "512": 20}`)
	}
	read, err := newLengths(samples)
	if err == nil {
		*l = *read
	}
	return err
}

// MarshalJSON writes the number of samples by their length, which is short for
// a dataset of any size.
func (l *Lengths) MarshalJSON() ([]byte, error) {
	samples := make(map[int64]int64, len(l.counts))
	before := int64(0)
	for _, c := range l.counts {
		samples[c.length], before = c.upTo-before, c.upTo
	}
	return json.Marshal(samples)
}

// Samples returns the number of samples.
func (l *Lengths) Samples() int64 { return l.counts[len(l.counts)-1].upTo }

// Shortest returns the length of the shortest sample.
func (l *Lengths) Shortest() int64 { return l.counts[0].length }

// Longest returns the length of the longest sample.
func (l *Lengths) Longest() int64 { return l.counts[len(l.counts)-1].length }

// At returns the length of the i-th shortest sample, from 0.
func (l *Lengths) At(i int64) int64 {
	at, _ := slices.BinarySearchFunc(l.counts, i+1, func(c lengthCount, n int64) int { return cmp.Compare(c.upTo, n) })
	return l.counts[at].length
}

// Mean returns the average length.
func (l *Lengths) Mean() float64 {
	total, before := 0.0, int64(0)
	for _, c := range l.counts {
		total += float64(c.length) * float64(c.upTo-before)
		before = c.upTo
	}
	return total / float64(l.Samples())
}

// cutTo returns the lengths after a tokenizer truncates the samples.
func (l *Lengths) cutTo(most int64) *Lengths {
	out := &Lengths{}
	for _, c := range l.counts {
		if c.length >= most {
			out.counts = append(out.counts, lengthCount{most, l.Samples()})
			break
		}
		out.counts = append(out.counts, c)
	}
	return out
}

// Varied reports whether batches differ in length: samples do, and are padded to the
// longest of their batch.
func (w *Workload) Varied() bool { return w.Lengths != nil && !w.Packing && len(w.Lengths.counts) > 1 }

// MeanTokens returns the mean number of tokens of a sample, or of a row if
// samples are packed, without padding.
func (w *Workload) MeanTokens() float64 {
	if w.Varied() {
		return w.Lengths.Mean()
	}
	return float64(w.Sequence)
}

// settleLengths makes sequence the longest sample's length, unless it was
// given: then longer samples are cut, or all are packed into rows of it. Padded
// batches have a mask, as collators make them.
func (w *Workload) settleLengths(d Draft) error {
	if w.Lengths != nil && len(w.Lengths.counts) == 0 {
		w.Lengths = nil // its error was reported
		return nil
	}
	switch {
	case w.Lengths == nil && w.Packing:
		return invalid.At("packing", errors.New("packing is true; it needs lengths, the tokens of each sample"))
	case w.Lengths == nil:
		return nil
	case w.Config != nil && w.Unmodelled == "" && w.TakesImages():
		return invalid.At("lengths", errors.New("lengths are given, but the model takes images"))
	}
	_, given := d["sequence"]
	switch {
	case !given || isLengths(d["sequence"]):
		w.Sequence = w.Lengths.Longest()
	case !w.Packing:
		w.Lengths = w.Lengths.cutTo(w.Sequence)
		w.Sequence = w.Lengths.Longest()
	}
	if _, given := d["attention_mask"]; !given && !w.Packing && w.isTransformers() {
		w.AttentionMask = Padded
	}
	return nil
}

// explainLengths says that a sequence that is too long comes from a sample.
func (w *Workload) explainLengths(err error) error {
	var p *invalid.Problem
	if w.Lengths == nil || !errors.As(err, &p) || p.Key != "sequence" {
		return err
	}
	return invalid.At("lengths", fmt.Errorf("the longest sample is too long for the model: %w; set sequence to that, to cut longer samples", err))
}

// isTransformers reports whether the model is one of transformers, which takes
// an attention mask and trains in every library's loop. The plain language
// model does not.
func (w *Workload) isTransformers() bool {
	if w.Config == nil {
		return false
	}
	family, _, err := models.Find(w.Config)
	return err != nil || family.PythonModule() == models.Transformers
}

// isLengths reports whether a sequence is a list of lengths rather than a
// number.
func isLengths(raw json.RawMessage) bool {
	text := bytes.TrimSpace(raw)
	return len(text) > 0 && (text[0] == '[' || text[0] == '{')
}
