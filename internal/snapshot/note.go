package snapshot

import (
	"encoding/binary"

	"memorymark/internal/trace"
)

// noteKeys are the keys that go into a note.
const noteKeys keySet = 1<<keyCompileContext | 1<<keyUserMetadata | 1<<keyPoolID | 1<<keyForwardFrames | 1<<keyDeviceFree

// noteKey is a note in comparable form: strings by number, lists by number.
type noteKey struct {
	compile, user int64
	pool          int64 // index into machine.pools, or none
	forward       int64 // index into notes.forward
	deviceFree    int64
	noFrames      bool
}

// notes stores each note once. PyTorch 2.12 records the pool of every event, so
// every event has a note, nearly always that of the event before.
type notes struct {
	keys      []noteKey // of Tables.Notes
	idOf      map[noteKey]trace.NoteID
	last      trace.NoteID
	forward   [][]string
	forwardOf map[string]int64
}

func newNotes() notes {
	empty := noteKey{compile: wordEmpty, user: wordEmpty, pool: none}
	return notes{
		keys: []noteKey{empty}, idOf: map[noteKey]trace.NoteID{empty: 0},
		forward: make([][]string, 1), forwardOf: map[string]int64{"": 0},
	}
}

// saysMore reports whether the fields of an event need a note. In PyTorch 2.8
// and later most events have these fields, but empty.
func (f *fields) saysMore() bool {
	more := f.have & noteKeys
	if v := &f.val[keyCompileContext]; v.kind == kString && v.ref == wordNotCompiled {
		more &^= 1 << keyCompileContext
	}
	if v := &f.val[keyUserMetadata]; v.kind == kString && v.ref == wordEmpty {
		more &^= 1 << keyUserMetadata
	}
	return more != 0
}

// setNote returns the note that combines old and the fields.
func (m *machine) setNote(old trace.NoteID, f *fields, freshEvent bool) trace.NoteID {
	k := m.notes.keys[old]
	k.noFrames = (k.noFrames || freshEvent) && !f.has(keyFrames)
	k.compile = m.remark(f, keyCompileContext, k.compile)
	if k.compile == wordNotCompiled {
		k.compile = wordEmpty
	}
	k.user = m.remark(f, keyUserMetadata, k.user)
	if f.has(keyPoolID) {
		if m.poolID(f, keyPoolID); m.err == nil {
			k.pool = f.val[keyPoolID].ref
		}
	}
	if f.has(keyForwardFrames) {
		k.forward = m.forwardFrames(f)
	}
	if f.has(keyDeviceFree) {
		k.deviceFree = m.size(f, keyDeviceFree)
	}
	return m.addNote(k)
}

// remark returns the number of a text for people. If it is not a string it is
// left out and reported, and the file is not refused.
func (m *machine) remark(f *fields, key, old int64) int64 {
	switch {
	case !f.has(key) || f.val[key].kind == kNone:
		return old
	case f.val[key].kind != kString:
		m.addUnknown(dictNames[f.of] + "." + vocabulary[key])
		return old
	default:
		return f.val[key].ref
	}
}

// addNote returns the ID of a note, a new one if it is new.
func (m *machine) addNote(k noteKey) trace.NoteID {
	if m.notes.keys[m.notes.last] == k {
		return m.notes.last
	}
	id, ok := m.notes.idOf[k]
	if !ok {
		m.charge(noteSize)
		n := trace.Note{
			CompileContext: m.strings[k.compile], UserMetadata: m.strings[k.user],
			ForwardFrames: m.notes.forward[k.forward], DeviceFree: k.deviceFree, NoFrames: k.noFrames,
		}
		if k.pool != none {
			n.Pool, n.HasPool = m.pools[k.pool], true
		}
		id = m.tables.AddNote(n)
		m.notes.keys = append(m.notes.keys, k)
		m.notes.idOf[k] = id
	}
	m.notes.last = id
	return id
}

// forwardFrames numbers a list of strings.
func (m *machine) forwardFrames(f *fields) int64 {
	l := m.listOf(f.val[keyForwardFrames], kString)
	if l.id != 0 {
		return l.id
	}
	var key []byte
	for i := range l.len() {
		key = binary.LittleEndian.AppendUint32(key, uint32(l.at(i).ref))
	}
	n, ok := m.notes.forwardOf[string(key)]
	if !ok {
		frames := make([]string, l.len())
		for i := range l.len() {
			frames[i] = m.strings[l.at(i).ref]
		}
		m.charge(int64(len(frames))*20 + 64)
		n = int64(len(m.notes.forward))
		m.notes.forward = append(m.notes.forward, frames)
		m.notes.forwardOf[string(key)] = n
	}
	l.id = n
	return n
}
