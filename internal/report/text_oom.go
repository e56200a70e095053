package report

import (
	"fmt"
	"io"

	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/figure"
	"memorymark/internal/recording"
)

// writeExplanation says why an allocation failed and which settings would avoid
// it.
func writeExplanation(w io.Writer, width int, x *recording.Explanation) {
	fmt.Fprintln(w)
	paragraph(w, width, "Reserved", reserved(x))
	paragraph(w, width, "Limit", forbade(x))
	if len(x.Remedies) == 0 {
		return
	}
	fmt.Fprintln(w)
	paragraph(w, width, "What gets past this request", upToIt)
	fmt.Fprintln(w)
	t := table{columns: []column{{title: "PYTORCH_CUDA_ALLOC_CONF"}, {title: "NEEDS", right: true}, {title: "GETS PAST IT"}}}
	for _, r := range x.Remedies {
		t.rows = append(t.rows, row{cells: []string{r.Settings, exact(r.Needs), r.Helps}})
	}
	t.write(w, width)
	fmt.Fprintln(w)
	paragraph(w, width, "", fmt.Sprintf("With the same settings, a card or limit of %s gets past it.", exact(x.Remedies[0].Needs)))
}

const upToIt = "by replay up to it; the recording does not show what the program would have requested next, so the whole run may need more."

func reserved(x *recording.Explanation) string {
	return fmt.Sprintf("%s: %s in use and %s free, in %s of which the largest is %s. "+
		"None holds the request, so the allocator wanted a segment of %s more, %s in all.",
		size(x.Reserved), size(x.Allocated), size(x.Free), plural(x.Pieces, "piece"), size(x.LargestFree),
		size(x.Segment), size(x.Reserved+x.Segment))
}

// forbade says what kept the allocator from a segment more: a limit that was set, or the device.
func forbade(x *recording.Explanation) string {
	if x.Capped {
		return fmt.Sprintf("the device had that much. A limit forbade it (set_per_process_memory_fraction), "+
			"which the recording shows to be at least %s and below %s.", exact(x.AtLeast), exact(x.Below))
	}
	return fmt.Sprintf("the device did not have it: the recording shows space for at least %s and less than %s.", exact(x.AtLeast), exact(x.Below))
}

// Failure is the story of an allocation that failed, for a page that shows its timeline.
func Failure(f *recording.FailureInfo) *draw.Failure {
	out := &draw.Failure{Title: "Out of memory at event " + figure.Count(f.Event), By: madeByFrom(&f.By)}
	out.Sentences = append(out.Sentences, fmt.Sprintf("%s was requested while %s was live.", size(f.Asked), size(f.LiveBytes)))
	for i := range f.Top {
		g := &f.Top[i]
		out.Live = append(out.Live, fmt.Sprintf("%s in %s: %s, by %s", size(g.Bytes), figure.Count(g.Count), g.Category, madeByFrom(&g.Place)))
	}
	x := f.Why
	if x == nil {
		return out
	}
	out.Sentences = append(out.Sentences, "The allocator held "+reserved(x), capital(forbade(x)))
	for _, r := range x.Remedies {
		out.Remedies = append(out.Remedies, draw.Remedy{Settings: r.Settings, Needs: exact(r.Needs), Helps: r.Helps == "yes"})
	}
	if len(x.Remedies) > 0 {
		out.After = capital(upToIt)
	}
	return out
}

// exact formats an amount with the digits that two decimals would hide: limits
// differ by little.
func exact(n int64) string { return fmt.Sprintf("%.3f GiB", float64(n)/float64(bytesize.GiB)) }
