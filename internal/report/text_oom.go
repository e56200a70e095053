package report

import (
	"fmt"
	"io"

	"memorymark/internal/bytesize"
	"memorymark/internal/recording"
)

// writeExplanation says why an allocation failed and what would have helped.
func writeExplanation(w io.Writer, width int, x *recording.Explanation) {
	fmt.Fprintf(w, "\n  %s was reserved: %s in use and %s free, in %s of which the largest is %s.\n",
		size(x.Reserved), size(x.Allocated), size(x.Free), plural(x.Pieces, "piece"), size(x.LargestFree))
	fmt.Fprintf(w, "  None holds the request, so the allocator wanted a segment of %s more, %s in all.\n",
		size(x.Segment), size(x.Reserved+x.Segment))
	if x.Capped {
		fmt.Fprintf(w, "  The device had that much. A limit forbade it (set_per_process_memory_fraction), which the\n"+
			"  recording shows to be at least %s and below %s.\n", exact(x.AtLeast), exact(x.Below))
	} else {
		fmt.Fprintf(w, "  The device did not have it: the recording shows room for at least %s and less than %s.\n",
			exact(x.AtLeast), exact(x.Below))
	}
	if len(x.Remedies) == 0 {
		return
	}
	fmt.Fprintf(w, "\n  %s (replayed; what the program would have asked for next is not in the recording):\n\n",
		heading("What would have met this request"))
	t := table{columns: []column{{title: "PYTORCH_CUDA_ALLOC_CONF"}, {title: "NEEDS", right: true}, {title: "WOULD HELP"}}}
	for _, r := range x.Remedies {
		t.rows = append(t.rows, row{cells: []string{r.Settings, exact(r.Needs), r.Helps}})
	}
	t.write(w, width)
	fmt.Fprintf(w, "\n  With the settings as they were, a card or limit of %s would have met it.\n", exact(x.Remedies[0].Needs))
}

// exact prints an amount with what two decimals would hide: limits differ by
// little.
func exact(n int64) string { return fmt.Sprintf("%.3f GiB", float64(n)/float64(bytesize.GiB)) }
