// Package trace is MemoryMark's central data type: what a program asked of one
// device's caching allocator, in order, and what is known of the outcome.
//
// A recorded snapshot becomes a Trace, a predicted training step becomes a
// Trace, and everything downstream (the allocator simulation, the timeline,
// the reports) reads nothing else and cannot tell which it was.
//
// An allocation is named by its ID, not by its address: addresses are reused,
// and a prediction has none until the allocator has placed it. IDs count up
// from 0; those below len(Initial) were live before the first event.
package trace

// Action is what an event says happened. The names are PyTorch's
// (torch/csrc/cuda/Module.cpp, action_to_str).
type Action uint8

// The actions of a trace.
const (
	Alloc         Action = iota + 1 // memory was allocated
	FreeRequested                   // the program freed memory
	FreeCompleted                   // the memory may be reused
	SegmentAlloc                    // the allocator took a segment from the driver
	SegmentFree                     // the allocator returned a segment
	SegmentMap                      // pages were mapped into an expandable segment
	SegmentUnmap                    // pages were unmapped from one
	SnapshotTaken                   // a snapshot was taken
	OutOfMemory                     // an allocation failed for good
	Annotated                       // the program described a live allocation, in Note.UserMetadata
	LastAction    = Annotated
)

var actionNames = [...]string{
	Alloc: "alloc", FreeRequested: "free_requested", FreeCompleted: "free_completed",
	SegmentAlloc: "segment_alloc", SegmentFree: "segment_free",
	SegmentMap: "segment_map", SegmentUnmap: "segment_unmap",
	SnapshotTaken: "snapshot", OutOfMemory: "oom", Annotated: "annotate",
}

// String returns PyTorch's name of the action.
func (a Action) String() string {
	if int(a) < len(actionNames) && a != 0 {
		return actionNames[a]
	}
	return "unknown"
}

// IsSegment reports whether the action is between the allocator and the driver,
// rather than between the program and the allocator.
func (a Action) IsSegment() bool { return a >= SegmentAlloc && a <= SegmentUnmap }

// ID names one allocation of a trace.
type ID int32

// None is the ID of events that belong to no allocation.
const None ID = -1

// Event is one entry of a trace. It is kept at 40 bytes: long recordings have
// millions.
type Event struct {
	Time   int64   // microseconds since the Unix epoch, 0 if unknown
	Addr   uint64  // 0 until placed, and for events that have none
	Size   int64   // requested bytes; for segments real bytes; for oom rounded; for snapshot active bytes
	ID     ID      // the allocation an alloc, a free or an annotation belongs to, else None
	Stack  StackID // the requester, 0 if not recorded
	Note   NoteID  // rare details, 0 if none
	Stream uint16  // index into Trace.Streams
	Action Action
	For    Category // what the memory is for, 0 if unknown
}

// PoolID names a private memory pool (CUDA graphs, torch.cuda.MemPool); the
// zero value is the default pool.
type PoolID [2]uint64

// NoteID is an index into Tables.Notes.
type NoteID int32

// Note holds rare details of events: index 0 is the empty note.
type Note struct {
	CompileContext string   // "" outside compiled regions
	UserMetadata   string   // what the program said of it, "" if nothing
	Pool           PoolID   // PyTorch 2.12 and later say the pool of each event
	HasPool        bool     // whether Pool was recorded
	ForwardFrames  []string // the forward pass behind an allocation made in backward
	DeviceFree     int64    // for oom: free bytes on the device
	NoFrames       bool     // no stack was recorded, as opposed to an empty one
}

// State is what a block is doing.
type State uint8

// The states of a block. The names are PyTorch's.
const (
	Inactive    State = iota // free, in the allocator's cache
	Allocated                // owned by the program
	PendingFree              // freed, waiting for another stream
)

var stateNames = [...]string{Inactive: "inactive", Allocated: "active_allocated", PendingFree: "active_pending_free"}

// String returns PyTorch's name of the state.
func (s State) String() string { return stateNames[s] }

// Block is a piece of a segment.
type Block struct {
	Addr      uint64
	Size      int64 // real bytes, 0 if unknown
	Requested int64 // what the program asked for; stale for an inactive block
	Stack     StackID
	Note      NoteID
	State     State
	ID        ID       // the allocation in the block, None if inactive
	For       Category // what the memory is for, 0 if unknown
}

// Segment is a range of device memory that the allocator holds.
type Segment struct {
	Addr       uint64
	Size       int64
	Stream     uint16 // index into Trace.Streams
	Pool       PoolID
	Small      bool // from the pool of allocations up to 1 MiB
	Expandable bool
	Stack      StackID
	Note       NoteID
	Blocks     []Block // by address, tiling the segment
}

// Mark is a named point in a trace: the begin or end of a phase, a step, or an
// annotation of the program.
type Mark struct {
	Name  string
	Time  int64 // microseconds since the Unix epoch
	Event int   // index of the first event at or after the mark
	End   bool  // closes the latest open mark of that name
}

// Loop says that a range of events repeats, as do the passes of a step that
// accumulates gradients. The events are those of the first round. In each later
// round, an older allocation that the range frees stands for the one that the
// round before left in its place (Turnover).
type Loop struct {
	From, To int // events
	Times    int // at least 2
}

// EventsWithin counts the events in a range, including every round of loops.
func (t *Trace) EventsWithin(from, to int) int {
	n := to - from
	for _, l := range t.Loops {
		if l.From >= from && l.To <= to {
			n += (l.Times - 1) * (l.To - l.From)
		}
	}
	return n
}

// The marks that MemoryMark's own recordings and predictions set around the
// parts of a step.
const (
	ForwardMark   = "forward"
	BackwardMark  = "backward"
	OptimizerMark = "optimizer"
)

// Settings are the allocator settings of a recording or a simulation. The zero
// value is PyTorch's default.
type Settings struct {
	Raw                string  // PYTORCH_CUDA_ALLOC_CONF as given
	MaxSplitSize       int64   // blocks this large are never split; 0 means no limit
	GCThreshold        float64 // fraction of the limit above which old blocks are returned; 0 is off
	ExpandableSegments bool
	// RoundupDivisions holds roundup_power2_divisions by power of two, from
	// 1 MiB (and below) to 32 GiB and above; 0 is off.
	RoundupDivisions [16]int64
	// Other keeps settings of a snapshot that the allocator simulation does not
	// need.
	Other map[string]int64
}

// Tables holds what events point to. The traces of several devices share one.
type Tables struct {
	Stacks *Stacks
	Notes  []Note // index 0 is the empty note
}

// NewTables returns tables that hold the empty stack and the empty note.
func NewTables() *Tables { return &Tables{Stacks: NewStacks(), Notes: make([]Note, 1)} }

// Trace is the history of one device.
type Trace struct {
	*Tables
	Device  int
	Streams []uint64  // stream handles; index 0 is always the default stream, handle 0
	Initial []Block   // live before the first event; Initial[i].ID == ID(i)
	Events  []Event   //
	Final   []Segment // by address; nil if unknown
	Marks   []Mark    // by event
	Loops   []Loop    // in order; only predictions have some, until they are placed
	// Emptied are events before which the program called torch.cuda.empty_cache(),
	// in order. Only predictions have them: a recording has the released segments.
	Emptied []int
	// Launched, Multiplied and TensorCores are the events before which the first kernel ran,
	// the first cuBLAS handle was made, and numbers of 16 bits or TF32 were first multiplied.
	// Only predictions have them.
	Launched, Multiplied, TensorCores int

	Settings Settings
	// Lost counts events that contradict the rest: a free of memory that is
	// not live, an allocation over live memory. PyTorch can be told to skip
	// kinds of events (skip_actions), which causes them.
	Lost int
}

// New returns an empty trace of a device.
func New(device int, tables *Tables) *Trace {
	return &Trace{Tables: tables, Device: device, Streams: []uint64{0}}
}

// Allocations returns how many allocations the trace knows: IDs run from 0 up
// to but not including it, in the order of their alloc events.
func (t *Trace) Allocations() int {
	for i := len(t.Events) - 1; i >= 0; i-- {
		if t.Events[i].Action == Alloc {
			return int(t.Events[i].ID) + 1
		}
	}
	return len(t.Initial)
}

// AddNote stores a note and returns its index. The caller avoids adding equal
// notes twice.
func (t *Tables) AddNote(n Note) NoteID {
	t.Notes = append(t.Notes, n)
	return NoteID(len(t.Notes) - 1)
}
