package snapshot

// kind says what a value is.
type kind uint8

const (
	kEmpty      kind = iota // no value: an unused slot of the memo
	kNone                   //
	kBool                   // ref is 0 or 1
	kInt                    // ref is the number
	kBig                    // ref is the bits of a uint64 above the largest int64
	kFloat                  // ref is the bits of a float64
	kString                 // ref is an index into machine.strings
	kPool                   // a tuple of two integers: ref is an index into machine.pools
	kTuple                  // any other tuple; no snapshot has one, so nothing is kept of it
	kList                   // ref is an index into machine.lists, or none if the list is empty
	kDict                   // a dict not recognised yet: ref is an index into machine.dicts, or none
	kStack                  // a list of frames: ref is a trace.StackID
	kFrame                  // ref is a trace.FrameID
	kEvent                  // ref is an index into machine.events
	kBlock                  // ref is an index into machine.blocks
	kSegment                // ref is an index into machine.segments
	kAnnotation             // ref is an index into machine.annotations
	kHistory                // ref is an index into machine.histories
	kOwn                    // a memoized container: it is in slot ref of the memo
)

var kindNames = [...]string{
	kEmpty: "nothing", kNone: "None", kBool: "a bool", kInt: "an integer", kBig: "a large integer",
	kFloat: "a float", kString: "a string", kPool: "a tuple of two integers", kTuple: "a tuple",
	kList: "a list", kDict: "a dict", kStack: "a list of frames", kFrame: "a frame", kEvent: "an event",
	kBlock: "a block", kSegment: "a segment", kAnnotation: "an annotation", kHistory: "a history",
	kOwn: "a container",
}

// String names the kind for error messages.
func (k kind) String() string { return kindNames[k] }

// none is the ref of an empty list or dict, which has no storage.
const none = -1

// value is what the stack and the memo hold. Containers live in the tables of
// the machine and a value only refers to them, so that copies of a value are
// the same object, as in Python.
type value struct {
	kind kind
	// shared is set once a container has been referred to through the memo:
	// it may then be used but no longer changed.
	shared bool
	ref    int64
}

// valueSize is the size of a value in memory.
const valueSize = 16

// list is a list with at least one element. Events, blocks and the like are
// appended in the order of their table, so that a list of them is a range;
// only lists of anything else need items.
type list struct {
	elem     kind
	start, n int64   // the range, if items is nil
	items    []value // the elements, if they are not a range
	// A list that many share is examined once: of is the kind of all elements,
	// id the stack or note text made of them.
	of kind
	id int64
}

func (l *list) len() int64 {
	if l.items != nil {
		return int64(len(l.items))
	}
	return l.n
}

func (l *list) at(i int64) value {
	if l.items != nil {
		return l.items[i]
	}
	return value{kind: l.elem, ref: l.start + i}
}

// add appends a value and returns by how many items the list grew.
func (l *list) add(v value) int64 {
	if l.items != nil {
		l.items = append(l.items, v)
		return 1
	}
	if l.n == 0 {
		l.elem, l.start = v.kind, v.ref
	}
	if v.kind == l.elem && v.ref == l.start+l.n {
		l.n++
		return 0
	}
	items := make([]value, 0, l.n+1)
	for i := range l.n {
		items = append(items, l.at(i))
	}
	l.items = append(items, v)
	return l.n + 1
}

func (v value) isInteger() bool { return v.kind == kInt || v.kind == kBig }
