package report

import (
	"fmt"
	"io"

	"memorymark/internal/bytesize"
	"memorymark/internal/recording"
)

// writeExplanation says why an allocation failed and which settings would avoid
// it.
func writeExplanation(w io.Writer, width int, x *recording.Explanation) {
	fmt.Fprintln(w)
	paragraph(w, width, "Reserved", fmt.Sprintf("%s: %s in use and %s free, in %s of which the largest is %s. "+
		"None holds the request, so the allocator wanted a segment of %s more, %s in all.",
		size(x.Reserved), size(x.Allocated), size(x.Free), plural(x.Pieces, "piece"), size(x.LargestFree),
		size(x.Segment), size(x.Reserved+x.Segment)))
	if x.Capped {
		paragraph(w, width, "Limit", fmt.Sprintf("the device had that much. A limit forbade it (set_per_process_memory_fraction), "+
			"which the recording shows to be at least %s and below %s.", exact(x.AtLeast), exact(x.Below)))
	} else {
		paragraph(w, width, "Limit", fmt.Sprintf("the device did not have it: the recording shows room for at least %s and less than %s.",
			exact(x.AtLeast), exact(x.Below)))
	}
	if len(x.Remedies) == 0 {
		return
	}
	fmt.Fprintln(w)
	paragraph(w, width, "What gets past this request", "by replay up to it; the recording does not show what the program would have requested next, so the whole run may need more.")
	fmt.Fprintln(w)
	t := table{columns: []column{{title: "PYTORCH_CUDA_ALLOC_CONF"}, {title: "NEEDS", right: true}, {title: "GETS PAST IT"}}}
	for _, r := range x.Remedies {
		t.rows = append(t.rows, row{cells: []string{r.Settings, exact(r.Needs), r.Helps}})
	}
	t.write(w, width)
	fmt.Fprintln(w)
	paragraph(w, width, "", fmt.Sprintf("With the same settings, a card or limit of %s gets past it.", exact(x.Remedies[0].Needs)))
}

// exact formats an amount with the digits that two decimals would hide: limits
// differ by little.
func exact(n int64) string { return fmt.Sprintf("%.3f GiB", float64(n)/float64(bytesize.GiB)) }
