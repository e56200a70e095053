package recording

import (
	"math"
	"strings"

	"memorymark/internal/trace"
)

// Place is the code behind an allocation.
type Place struct {
	Category string `json:"category,omitempty"` // what the memory is for, absent if unknown
	// BeforeRecording is set for allocations that were live before the first
	// event.
	BeforeRecording bool `json:"before_recording,omitempty"`
	// ModelFrame is the innermost frame of a library or the user, or inside the
	// user's that of torch.nn. UserFrame is the innermost one outside any library.
	ModelFrame *trace.Frame `json:"model_frame,omitempty"`
	UserFrame  *trace.Frame `json:"user_frame,omitempty"`
	// BackwardNode is the operator whose backward made it, if C++ stacks were
	// recorded.
	BackwardNode string        `json:"backward_node,omitempty"`
	Frames       []trace.Frame `json:"frames,omitempty"` // innermost first
}

func newPlace(frames []trace.Frame, what trace.Category, before bool) Place {
	p := Place{
		Category: CategoryName(what), BeforeRecording: before,
		BackwardNode: trace.BackwardNode(frames), Frames: frames,
	}
	if f, ok := trace.Maker(frames); ok {
		p.ModelFrame = &f
	}
	if f, ok := trace.InnermostUser(frames); ok {
		p.UserFrame = &f
	}
	return p
}

// Amount is a part of the live memory.
type Amount struct {
	Bytes int64   `json:"total_bytes"`
	Count int     `json:"count"`
	Share float64 `json:"share"` // of live memory, 0 to 1
}

func newAmount(bytes int64, count int, of int64) Amount {
	a := Amount{Bytes: bytes, Count: count}
	if of > 0 {
		a.Share = math.Round(float64(bytes)/float64(of)*1e6) / 1e6
	}
	return a
}

// CategoryName is the category in JSON, empty if unknown.
func CategoryName(c trace.Category) string {
	if c == trace.Unknown {
		return ""
	}
	return strings.ReplaceAll(c.String(), " ", "_")
}
