package report

import (
	"fmt"
	"image/color"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/figure"
	"memorymark/internal/recording"
	"memorymark/internal/trace"
)

// madeBy names the line that made an allocation.
func madeBy(p *recording.Place) string {
	switch {
	case p.ModelFrame != nil && p.BackwardNode != "":
		return p.ModelFrame.Short().String() + ", " + p.BackwardNode
	case p.ModelFrame != nil:
		return p.ModelFrame.Short().String()
	case p.BackwardNode != "":
		return "backward, " + p.BackwardNode
	case p.BeforeRecording:
		return "live before the recording"
	default:
		return "no Python stack, as in backward"
	}
}

// calledFrom names the user's line if it is a different one.
func calledFrom(p *recording.Place) string {
	if p.UserFrame == nil || p.ModelFrame != nil && *p.UserFrame == *p.ModelFrame {
		return ""
	}
	return p.UserFrame.Short().String()
}

// madeByFrom is both.
func madeByFrom(p *recording.Place) string {
	text := madeBy(p)
	if from := calledFrom(p); from != "" {
		text += ", called from " + from
	}
	return text
}

// madeIn is for a single column: the user's line is added if a layer of
// PyTorch's says nothing about the model.
func madeIn(p *recording.Place) string {
	if p.ModelFrame != nil && p.ModelFrame.IsLayer() {
		return madeByFrom(p)
	}
	return madeBy(p)
}

// below returns the first n frames, without C++ and the plumbing of module
// calls, or all frames if n is negative.
func below(p *recording.Place, n int) []string {
	var out []string
	for _, f := range p.Frames {
		if n < 0 || len(out) < n && !isPlumbing(f) {
			out = append(out, f.Short().String())
		}
	}
	return out
}

func isPlumbing(f trace.Frame) bool {
	return f.Name == "_call_impl" || f.Name == "_wrapped_call_impl" || f.IsNative()
}

// categoryText is the category as a table shows it.
func categoryText(name string) string {
	if name == "" {
		return trace.Unknown.String()
	}
	return strings.ReplaceAll(name, "_", " ")
}

// categoryColor is the colour of a category, the same as in pictures.
func categoryColor(name string) color.Color {
	for _, c := range trace.Categories {
		if c != trace.Unknown && recording.CategoryName(c) == name {
			return draw.CategoryColor(c)
		}
	}
	return nil
}

func size(n int64) string { return bytesize.Bytes(n).String() }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// plural writes a number and its noun: "1 event", "2,048 events". The plural is
// given if it is irregular.
func plural(n int, noun string, many ...string) string {
	switch {
	case n == 1:
	case len(many) > 0:
		noun = many[0]
	default:
		noun += "s"
	}
	return figure.Count(n) + " " + noun
}
