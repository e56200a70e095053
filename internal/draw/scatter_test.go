package draw

import (
	"bytes"
	"strings"
	"testing"
)

func TestScatter(t *testing.T) {
	s := &Scatter{
		XName: "days", YName: "dollars", YUnit: "$", Series: []string{"all weights", "adapters"},
		Points: []Spot{
			{X: 0.1, Y: 100, Label: "8 × h100", Title: "fits"},
			{X: 10, Y: 5000, Series: 1, Hollow: true, Title: "needs more"},
			{X: 0.1, Y: 100, Label: "beneath the first"},
		},
	}
	var svg, png bytes.Buffer
	if err := s.SVG(&svg, Style{Title: "a plan"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">8 × h100<", "<title>fits</title>", "<title>needs more</title>", ">$1,000<", ">0.1<", ">does not fit<"} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(svg.String(), "beneath the first") {
		t.Error("one label is written over another")
	}
	if err := s.PNG(&png, Style{}); err != nil || png.Len() < 1000 {
		t.Errorf("%d bytes, %v", png.Len(), err)
	}
}

// A picture of nothing is a picture.
func TestScatterOfNothing(t *testing.T) {
	var out bytes.Buffer
	if err := (&Scatter{}).SVG(&out, Style{}); err != nil || strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
		t.Errorf("%v: %s", err, out.String())
	}
}
