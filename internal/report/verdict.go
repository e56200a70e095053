package report

import (
	"fmt"
	"io"

	"memorymark/internal/bytesize"
	"memorymark/internal/predict"
)

// verdictTitle is a verdict as the title of a paragraph.
func verdictTitle(v predict.Verdict) string {
	return map[predict.Verdict]string{predict.Fits: "Fits", predict.Tight: "Tight", predict.DoesNotFit: "Does not fit"}[v]
}

// tightText explains an answer that leaves less than the margin.
func tightText(margin bytesize.Bytes) string {
	return fmt.Sprintf("less than a margin of %v: a desktop, another driver or a longer batch may take that", margin)
}

// writeLeft writes that steps fit, and what they leave of the memory.
func writeLeft(w io.Writer, width int, p *predict.Prediction, of bytesize.Bytes) {
	left := fmt.Sprintf("%v of %v is left", p.Left, of)
	if p.Verdict == predict.Tight {
		left += ", " + tightText(p.Margin)
	}
	paragraph(w, width, verdictTitle(p.Verdict), left)
}

// leftText is the unused part of a limit, in a cell of a table.
func leftText(v predict.Verdict, left bytesize.Bytes) string {
	if v == predict.Tight {
		return "tight, " + left.String()
	}
	return left.String()
}
