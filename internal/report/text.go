package report

import (
	"fmt"
	"image/color"
	"math"
	"strconv"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/draw"
	"memorymark/internal/figure"
	"memorymark/internal/trace"
)

// Frame is a line of a stack in JSON.
type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

func newFrame(f trace.Frame) *Frame { return &Frame{File: f.File, Line: f.Line, Function: f.Name} }

func newFrames(frames []trace.Frame) []Frame {
	out := make([]Frame, len(frames))
	for i, f := range frames {
		out[i] = *newFrame(f)
	}
	return out
}

// String writes the frame as "train.py:12 step".
func (f *Frame) String() string {
	if f == nil {
		return ""
	}
	s := f.File
	if f.Line > 0 {
		s += ":" + strconv.Itoa(f.Line)
	}
	if f.Function != "" {
		s += " " + f.Function
	}
	return s
}

// Place is the code behind an allocation.
type Place struct {
	Category string `json:"category,omitempty"` // what the memory is for, absent if unknown
	// BeforeRecording is set for what was live before the first event.
	BeforeRecording bool `json:"before_recording,omitempty"`
	// ModelFrame is the innermost frame outside PyTorch, UserFrame the
	// innermost one outside any library.
	ModelFrame *Frame `json:"model_frame,omitempty"`
	UserFrame  *Frame `json:"user_frame,omitempty"`
	// BackwardNode is the operator whose backward made it, if C++ stacks tell.
	BackwardNode string  `json:"backward_node,omitempty"`
	Frames       []Frame `json:"frames,omitempty"` // innermost first
}

func newPlace(frames []trace.Frame, what trace.Category, before bool) Place {
	p := Place{
		Category: categoryName(what), BeforeRecording: before,
		BackwardNode: trace.BackwardNode(frames), Frames: newFrames(frames),
	}
	if f, ok := trace.InnermostModel(frames); ok {
		p.ModelFrame = newFrame(f)
	}
	if f, ok := trace.InnermostUser(frames); ok {
		p.UserFrame = newFrame(f)
	}
	return p
}

// madeBy names the line that made an allocation.
func (p *Place) madeBy() string {
	switch {
	case p.ModelFrame != nil && p.BackwardNode != "":
		return p.ModelFrame.String() + ", " + p.BackwardNode
	case p.ModelFrame != nil:
		return p.ModelFrame.String()
	case p.BackwardNode != "":
		return "backward, " + p.BackwardNode
	case p.BeforeRecording:
		return "live before the recording"
	default:
		return "no Python stack, as in backward"
	}
}

// calledFrom names the user's line if it is another one.
func (p *Place) calledFrom() string {
	if p.UserFrame == nil || p.ModelFrame != nil && *p.UserFrame == *p.ModelFrame {
		return ""
	}
	return p.UserFrame.String()
}

// below returns the first n frames, without C++ and the plumbing of module
// calls, or all frames if n is negative.
func (p *Place) below(n int) []string {
	var out []string
	for i := range p.Frames {
		f := &p.Frames[i]
		if n < 0 || len(out) < n && !f.isPlumbing() {
			out = append(out, f.String())
		}
	}
	return out
}

func (f *Frame) isPlumbing() bool {
	return f.Function == "_call_impl" || f.Function == "_wrapped_call_impl" ||
		trace.Frame{File: f.File, Name: f.Function}.IsNative()
}

// Amount is a part of what is live.
type Amount struct {
	Bytes int64   `json:"total_bytes"`
	Count int     `json:"count"`
	Share float64 `json:"share"` // of all that is live, 0 to 1
}

func newAmount(bytes int64, count int, of int64) Amount {
	a := Amount{Bytes: bytes, Count: count}
	if of > 0 {
		a.Share = math.Round(float64(bytes)/float64(of)*1e6) / 1e6
	}
	return a
}

// categoryName is the category as JSON has it, empty if it is unknown.
func categoryName(c trace.Category) string {
	if c == trace.Unknown {
		return ""
	}
	return strings.ReplaceAll(c.String(), " ", "_")
}

// categoryText is the category as a table shows it.
func categoryText(name string) string {
	if name == "" {
		return trace.Unknown.String()
	}
	return strings.ReplaceAll(name, "_", " ")
}

// categoryColor is the colour that a category has in pictures too.
func categoryColor(name string) color.Color {
	for _, c := range trace.Categories {
		if c != trace.Unknown && categoryName(c) == name {
			return draw.CategoryColor(c)
		}
	}
	return nil
}

func size(n int64) string { return bytesize.Bytes(n).String() }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// plural writes a number and its noun: "1 event", "2,048 events". The plural
// is given where it is not made by an s.
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
