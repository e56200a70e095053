package snapshot

import (
	"math"
	"slices"

	"memorymark/internal/trace"
)

// These methods read one field of a dict as a type. A field of another type is
// an error that names the dict, the key and the value found.

func (m *machine) wrongType(f *fields, key int64, want string) {
	m.fail("%s: %s is %s and not %s", dictNames[f.of], vocabulary[key], f.val[key].kind, want)
}

func (m *machine) int(f *fields, key int64) int64 {
	if f.val[key].kind != kInt {
		m.wrongType(f, key, "a 64-bit integer")
	}
	return f.val[key].ref
}

// size reads a number of bytes.
func (m *machine) size(f *fields, key int64) int64 {
	n := m.int(f, key)
	if n < 0 {
		m.fail("%s: %s is negative: %d", dictNames[f.of], vocabulary[key], n)
	}
	return n
}

// bits reads a number whose sign depends on the writer: addresses are unsigned
// in Python's and signed in the C++ one's.
func (m *machine) bits(f *fields, key int64) uint64 {
	if !f.val[key].isInteger() {
		m.wrongType(f, key, "an integer")
	}
	return uint64(f.val[key].ref)
}

func (m *machine) bool(f *fields, key int64) bool {
	if f.val[key].kind != kBool {
		m.wrongType(f, key, "a bool")
	}
	return f.val[key].ref == 1
}

func (m *machine) text(f *fields, key int64) string {
	if f.val[key].kind != kString {
		m.wrongType(f, key, "a string")
		return ""
	}
	return m.strings[f.val[key].ref]
}

// word reads one of the words first to last and returns which it is.
func (m *machine) word(f *fields, key, first, last int64) int64 {
	v := f.val[key]
	if v.kind == kString && v.ref >= first && v.ref <= last {
		return v.ref - first
	}
	if text := m.text(f, key); m.err == nil {
		m.fail("%s: %s is %.40q, which is not known", dictNames[f.of], vocabulary[key], text)
	}
	return 0
}

// action reads the action of an event. An unknown one is no reason to refuse a
// file: the event is left out and reported.
func (m *machine) action(f *fields) trace.Action {
	text := m.text(f, keyAction)
	if v := f.val[keyAction].ref; v >= wordActions && v < numWords {
		action := trace.Alloc + trace.Action(v-wordActions)
		m.odd = m.odd || action == userDefined
		return action
	}
	m.odd = true
	m.addUnknown("event.action=" + text)
	return 0
}

// device reads a device number. PyTorch's are a byte.
func (m *machine) device(f *fields) int {
	n := m.int(f, keyDevice)
	if n < 0 || n >= maxDevices {
		m.fail("%s: device %d: the limit is %d", dictNames[f.of], n, maxDevices)
		return 0
	}
	return int(n)
}

// stream reads a stream handle and returns its number. Numbers are per file
// here and become per device at the end.
func (m *machine) stream(f *fields) uint16 {
	handle := m.bits(f, keyStream)
	if m.streams[m.lastStream] == handle {
		return m.lastStream
	}
	n, ok := m.streamOf[handle]
	if !ok {
		if len(m.streams) > maxStreams {
			m.fail("more than %d streams", maxStreams)
			return 0
		}
		n = uint16(len(m.streams))
		m.streams = append(m.streams, handle)
		m.streamOf[handle] = n
	}
	m.lastStream = n
	return n
}

func (m *machine) poolID(f *fields, key int64) trace.PoolID {
	if f.val[key].kind != kPool {
		m.wrongType(f, key, "a tuple of two integers")
		return trace.PoolID{}
	}
	return m.pools[f.val[key].ref]
}

// frames reads a list of frames.
func (m *machine) frames(f *fields) trace.StackID {
	v := f.val[keyFrames]
	switch {
	case v.kind == kStack:
		return trace.StackID(v.ref)
	case v.kind == kList && v.ref == none:
		return 0
	}
	l := m.listOf(v, kFrame)
	if l.id == 0 {
		ids := make([]trace.FrameID, l.len())
		for i := range ids {
			ids[i] = trace.FrameID(l.at(int64(i)).ref)
		}
		l.id = int64(m.addStack(ids))
	}
	return trace.StackID(l.id)
}

// addStack stores a stack or finds it. Programs repeat themselves, so it is
// usually a recent one.
func (m *machine) addStack(ids []trace.FrameID) trace.StackID {
	if len(ids) == 0 {
		return 0
	}
	n := len(ids)
	h := uint32(ids[0])*31 + uint32(ids[n/2])*17 + uint32(ids[n-1])*7 + uint32(n)
	recent := &m.recent[h%uint32(len(m.recent))]
	if slices.Equal(m.tables.Stacks.IDs(*recent), ids) {
		return *recent
	}
	before := m.tables.Stacks.Len()
	*recent = m.tables.Stacks.Add(ids)
	if m.tables.Stacks.Len() > before {
		m.frameRefs += int64(n)
		m.charge(int64(n)*4 + 64)
		if m.frameRefs > math.MaxInt32 {
			m.fail("more than %d frames in all stacks", math.MaxInt32)
		}
	}
	return *recent
}

// listOf returns a list whose elements must be of one kind.
func (m *machine) listOf(v value, elem kind) *list {
	if v.kind != kList {
		m.fail("%s where a list is expected", v.kind)
		return &list{}
	}
	if v.ref == none {
		return &list{}
	}
	l := &m.lists[v.ref]
	if l.of == elem {
		return l
	}
	for i := range l.len() {
		if got := l.at(i).kind; got != elem {
			m.fail("%s in a list where %s is expected", got, elem)
			return &list{}
		}
		if l.items == nil {
			break // a range is of one kind
		}
	}
	l.of = elem
	return l
}
