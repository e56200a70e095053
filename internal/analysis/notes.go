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

func (a *Answer) noteAll(about string, texts []string) {
	for _, text := range texts {
		a.note(about, "%s", text)
	}
}

// explain writes the notes of an answer that is otherwise complete. Only multiples of
// the unit count as batches.
func (a *Answer) explain(unit int64, caveats []string) {
	a.explainRecommended(unit)
	a.explainMemory()
	if o := a.NextFailure; o != nil {
		a.note("limit", "batch %d fails: %s", a.OptimalBatch+unit, o.Reason())
	}
	if len(a.FailsBelow) > 0 {
		a.note("careful", "some smaller batches do not fit: %s fail; batch %d fits with %v left",
			enumerate(a.FailsBelow), a.OptimalBatch, a.left(a.OptimalBatch))
	}
	for _, c := range caveats {
		a.note("card", "%s", c)
	}
}

// explainRecommended says why the recommended batch is recommended, and where the
// present one is faster, why not that.
func (a *Answer) explainRecommended(unit int64) {
	if a.Recommended == 0 {
		return
	}
	batch, fastest, margin := a.Recommended, a.fastest(), bytesize.Bytes(a.Margin)
	var text string
	switch share := a.result(batch).SamplesPerSecond / fastest.SamplesPerSecond; {
	case a.Tight:
		text = fmt.Sprintf("batch %d fits with %v left; no batch is safe: each leaves less than %v, or its neighbours fail", batch, a.left(batch), margin)
	case batch == a.OptimalBatch:
		text = fmt.Sprintf("batch %d, the largest, with %v left", batch, a.left(batch))
	case batch == fastest.Batch:
		text = fmt.Sprintf("batch %d is the fastest, with %v left", batch, a.left(batch))
	case a.Worthwhile():
		text = fmt.Sprintf("batch %d is within 5 %% of the speed of batch %d", batch, fastest.Batch)
	default:
		text = fmt.Sprintf("batch %d is safe, at %.0f %% of the speed of batch %d; larger ones fit only by chance or leave less than %v",
			batch, 100*share, fastest.Batch, margin)
	}
	a.note("recommended", "%s%s", text, a.whyNotPresent(unit))
}

// whyNotPresent says why a slower batch than the present one is recommended, "" where
// it is not.
func (a *Answer) whyNotPresent(unit int64) string {
	present, recommended := a.result(a.CurrentBatch), a.result(a.Recommended)
	if !present.Success || present.SamplesPerSecond <= recommended.SamplesPerSecond {
		return ""
	}
	faster := fmt.Sprintf("; your batch of %d is %.0f %% faster", a.CurrentBatch, 100*(present.SamplesPerSecond/recommended.SamplesPerSecond-1))
	switch {
	case a.CurrentBatch%unit != 0:
		return fmt.Sprintf("%s, and no multiple of %d", faster, unit)
	case present.Verdict == predict.Tight:
		return fmt.Sprintf("%s, and leaves only %v", faster, a.left(a.CurrentBatch))
	case a.Worthwhile() && present.Reserved > recommended.Reserved:
		return fmt.Sprintf("%s, and takes %v more", faster, bytesize.Bytes(present.Reserved-recommended.Reserved))
	default:
		return faster + ", and its neighbours fail"
	}
}

// fastest is the fastest batch that was looked at, the smallest of several.
func (a *Answer) fastest() (fastest Result) {
	for _, r := range a.Results {
		if r.Success && r.SamplesPerSecond > fastest.SamplesPerSecond {
			fastest = r
		}
	}
	return fastest
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
func (a *Answer) explainLoop(others []predict.LoopPeak, l workload.TrainingLoop) {
	if len(others) == 0 {
		return
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
		text += fmt.Sprintf("; in %s it does not, so choose the loop that you use", joined(not))
	}
	a.note("loop", "%s", text)
}

// joined is a list in a sentence.
func joined(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Worthwhile reports whether the recommended batch is about as fast as the fastest:
// where that fits by chance, none that is safe may be.
func (a *Answer) Worthwhile() bool {
	return a.result(a.Recommended).SamplesPerSecond >= worthwhile*a.fastest().SamplesPerSecond
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
