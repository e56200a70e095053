package trace

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strconv"
)

// StackID names a stack of a Stacks table; 0 is the stack that was not
// recorded.
type StackID int32

// FrameID names a frame of a Stacks table.
type FrameID int32

// Frame is one line of a stack.
type Frame struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // 0 for a module of a prediction, and where it is not known
	Name string `json:"function"`       // or the path of the module
	FX   *FX    `json:"-"`              // set for frames of a compiled graph
}

// String writes the frame as "train.py:12 step".
func (f Frame) String() string {
	s := f.File
	if f.Line > 0 {
		s += ":" + strconv.Itoa(f.Line)
	}
	if f.Name != "" {
		s += " " + f.Name
	}
	return s
}

// FX is what PyTorch 2.10 and later add to the frames of compiled graphs.
type FX struct{ Op, Name, Target, Trace string }

// Stacks stores each frame and each stack once. Millions of events of a
// snapshot share a few thousand stacks; stored separately they would not fit.
type Stacks struct {
	frames  []Frame
	ofFrame map[Frame]FrameID

	flat    []FrameID // the frames of all stacks, one after the other
	bounds  []int32   // stack i is flat[bounds[i]:bounds[i+1]]
	byHash  map[uint64]StackID
	clashes map[uint64][]StackID // further stacks of a hash already taken
	seed    maphash.Seed
	scratch []byte
}

// NewStacks returns a table that holds the empty stack, 0.
func NewStacks() *Stacks {
	return &Stacks{
		ofFrame: make(map[Frame]FrameID),
		bounds:  []int32{0, 0},
		byHash:  make(map[uint64]StackID),
		clashes: make(map[uint64][]StackID),
		seed:    maphash.MakeSeed(),
	}
}

// Len returns the number of stacks, the empty one included.
func (s *Stacks) Len() int { return len(s.bounds) - 1 }

// AddFrame stores a frame, or finds it, and returns its ID.
func (s *Stacks) AddFrame(f Frame) FrameID {
	if f.FX == nil {
		if id, ok := s.ofFrame[f]; ok {
			return id
		}
		s.ofFrame[f] = FrameID(len(s.frames))
	}
	s.frames = append(s.frames, f)
	return FrameID(len(s.frames) - 1)
}

// Add stores a stack, innermost frame first, or finds it, and returns its ID.
// An empty stack is 0. The frames are copied.
func (s *Stacks) Add(frames []FrameID) StackID {
	if len(frames) == 0 {
		return 0
	}
	h := s.hash(frames)
	first, taken := s.byHash[h]
	if taken {
		if slices.Equal(s.IDs(first), frames) {
			return first
		}
		for _, id := range s.clashes[h] {
			if slices.Equal(s.IDs(id), frames) {
				return id
			}
		}
	}
	s.flat = append(s.flat, frames...)
	s.bounds = append(s.bounds, int32(len(s.flat)))
	id := StackID(len(s.bounds) - 2)
	if taken {
		s.clashes[h] = append(s.clashes[h], id)
	} else {
		s.byHash[h] = id
	}
	return id
}

func (s *Stacks) hash(frames []FrameID) uint64 {
	s.scratch = s.scratch[:0]
	for _, f := range frames {
		s.scratch = binary.LittleEndian.AppendUint32(s.scratch, uint32(f))
	}
	return maphash.Bytes(s.seed, s.scratch)
}

// IDs returns the frames of a stack, innermost first. The caller must not
// change it.
func (s *Stacks) IDs(id StackID) []FrameID { return s.flat[s.bounds[id]:s.bounds[id+1]] }

// Frame returns a frame.
func (s *Stacks) Frame(id FrameID) Frame { return s.frames[id] }

// Frames returns a copy of a stack's frames, innermost first, without those of
// MemoryMark itself.
func (s *Stacks) Frames(id StackID) []Frame {
	ids := s.IDs(id)
	out := make([]Frame, len(ids))
	for i, f := range ids {
		out[i] = s.frames[f]
	}
	return withoutOwn(out)
}
