package analysis

import (
	"fmt"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// Note is a sentence of an answer, the same on the command line, in the API
// and on the page.
type Note struct {
	About string `json:"about" enum:"engine,recommended,memory,lengths,loop,limit,careful,changes,cost,full fine-tuning,card,accuracy"`
	Text  string `json:"text"`
}

// AboutAccuracy is what a note is about that says how far off such answers
// were.
const AboutAccuracy = "accuracy"

func (a *Answer) note(about, format string, args ...any) {
	a.Notes = append(a.Notes, Note{About: about, Text: fmt.Sprintf(format, args...)})
}

// explain writes the notes of an answer that is otherwise complete. Next is the
// batch after the optimal one.
func (a *Answer) explain(next int64, caveats []string) {
	a.explainRecommended()
	a.explainMemory()
	if o := a.NextFailure; o != nil {
		a.note("limit", "batch %d fails: %s", next, o.Reason())
	}
	if len(a.FailsBelow) > 0 {
		a.note("careful", "some smaller batches do not fit: %s fail; batch %d fits with %v left",
			enumerate(a.FailsBelow), a.OptimalBatch, a.left(a.OptimalBatch))
	}
	for _, c := range caveats {
		a.note("card", "%s", c)
	}
}

// explainRecommended says why the recommended batch is recommended.
func (a *Answer) explainRecommended() {
	if a.Recommended == 0 {
		return
	}
	share := a.result(a.Recommended).SamplesPerSecond / a.result(a.OptimalBatch).SamplesPerSecond
	switch batch := a.Recommended; {
	case a.Tight:
		a.note("recommended", "batch %d fits with %v left; no batch leaves memory to spare", batch, a.left(batch))
	case batch == a.OptimalBatch:
		a.note("recommended", "batch %d, the largest, with %v left", batch, a.left(batch))
	case a.Worthwhile():
		a.note("recommended", "batch %d is within 5 %% of the speed of batch %d", batch, a.OptimalBatch)
	default:
		a.note("recommended", "batch %d is safe, at %.0f %% of the speed of batch %d; larger ones fit only by chance or with little left",
			batch, 100*share, a.OptimalBatch)
	}
}

// explainMemory says what decides the peak.
func (a *Answer) explainMemory() {
	if a.FlatTo > 0 {
		a.note("memory", "up to batch %d the %s sets the peak, and the batch hardly matters: it is %v with a single sample",
			a.FlatTo, predict.PhaseName(a.FlatPhase), bytesize.Bytes(a.FlatPeak))
	}
	if a.PeakPhase == "" || a.FlatTo >= a.OptimalBatch {
		return
	}
	grows := ""
	if l := a.MemoryLine; l != nil {
		grows = fmt.Sprintf("; from batch %d on it is %v plus %v per sample", l.From, l.Fixed, l.PerSample)
	}
	a.note("memory", "at batch %d the %s sets the peak, %v%s", a.OptimalBatch, predict.PhaseName(a.PeakPhase), bytesize.Bytes(a.OptimalMemory), grows)
}

// explainLengths says what samples of different lengths mean for a batch.
func (a *Answer) explainLengths(w *workload.Workload) {
	if w.Varied() {
		a.note("lengths", "%s samples of %d to %d tokens, padded to the longest of their batch: a batch that trains does so with the longest sample, and after batches of other lengths",
			figure.Count(int(w.Lengths.Samples())), w.Lengths.Shortest(), w.Lengths.Longest())
	}
}

// explainLoop says which training loop the answer is for, and in which others
// the largest batch trains.
func (a *Answer) explainLoop(r *predict.Runner, l workload.TrainingLoop) error {
	others, err := r.OtherLoops(a.OptimalBatch)
	if err != nil || len(others) == 0 {
		return err
	}
	in, not := []string{l.String()}, []string(nil)
	for _, o := range others {
		if o.Fits {
			in = append(in, o.Loop.Label())
		} else {
			not = append(not, o.Loop.Label())
		}
	}
	text := fmt.Sprintf("batch %d trains in %s", a.OptimalBatch, joined(in))
	if len(not) > 0 {
		text += fmt.Sprintf("; in %s it does not, so say which loop is yours", joined(not))
	}
	a.note("loop", "%s", text)
	return nil
}

// joined is a list in a sentence.
func joined(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Worthwhile reports whether the recommended batch is about as fast as the
// optimal one: where that fits by chance, none that is safe may be.
func (a *Answer) Worthwhile() bool {
	return a.result(a.Recommended).SamplesPerSecond >= worthwhile*a.result(a.OptimalBatch).SamplesPerSecond
}

// result is what was found of a batch.
func (a *Answer) result(batch int64) Result {
	for _, r := range a.Results {
		if r.Batch == batch {
			return r
		}
	}
	return Result{}
}

// left is what a batch leaves of the limit.
func (a *Answer) left(batch int64) bytesize.Bytes {
	return bytesize.Bytes(a.Limit - a.result(batch).Reserved)
}

// enumerate writes runs of batches as a sentence has them.
func enumerate(runs []Batches) string {
	words := make([]string, len(runs))
	for i, run := range runs {
		if words[i] = fmt.Sprint(run.From); run.To > run.From {
			words[i] = fmt.Sprintf("%d to %d", run.From, run.To)
		}
	}
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " and " + words[last]
	}
	return words[0]
}
