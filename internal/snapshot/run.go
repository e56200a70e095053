package snapshot

import (
	"encoding/binary"

	"memorymark/internal/trace"
)

// This file reads whole dicts and whole lists of frames without the stack.
// CPython writes nearly all of a snapshot in one way: a key is a reference to
// the memo, a value is a number or another reference. A run reads as far as the
// window goes. Anything unusual, and anything that the window cuts, is left to
// the opcodes, without side effects.

// dictRun reads the items of a new dict, from after the MARK to SETITEMS, and
// makes its record. If it cannot, it reports false and has changed nothing.
func (m *machine) dictRun(dict *value) bool {
	start, memoized := m.pos, len(m.memo)
	f := &m.fields
	f.have, f.extra = 0, f.extra[:0]
	if m.items(f) && !dict.shared && m.makeRecord(dict, f) {
		return true
	}
	m.pos, m.memo = start, m.memo[:memoized]
	return false
}

// items reads keys and values up to SETITEMS.
func (m *machine) items(f *fields) bool {
	last := m.lastOpcode()
	for m.pos <= last {
		arg := m.buf[m.pos+1 : m.pos+lookahead]
		slot, size := int(arg[0]), 2
		switch opcode(m.buf[m.pos]) {
		case opLongBinGet:
			slot, size = int(binary.LittleEndian.Uint32(arg)), 5
		case opBinGet:
		case opSetItems:
			m.pos++
			return true
		default:
			return false
		}
		if slot >= len(m.memo) || m.memo[slot].kind != kString {
			return false
		}
		key := m.memo[slot]
		if m.pos += size; m.pos > last {
			return false
		}
		v := m.atom()
		switch {
		case v.kind == kEmpty:
			return false
		case key.ref < numKeys:
			f.have |= 1 << key.ref
			f.val[key.ref] = v
		default:
			f.extra = append(f.extra, key, v)
		}
	}
	return false
}

// atom reads a value that is complete in itself: a number, a bool, a reference
// to the memo, an empty container, a list of frames, a pair of integers. It
// returns kEmpty for anything else. The window must hold an opcode.
func (m *machine) atom() value {
	arg := m.buf[m.pos+1 : m.pos+lookahead]
	switch op := opcode(m.buf[m.pos]); op {
	case opBinGet:
		m.pos += 2
		return m.finished(int(arg[0]))
	case opLongBinGet:
		m.pos += 5
		return m.finished(int(binary.LittleEndian.Uint32(arg)))
	case opBinInt1:
		if opcode(arg[1]) == opBinInt1 && opcode(arg[3]) == opTuple2 {
			m.pos += 5
			return m.memoize(value{kind: kPool, ref: m.pool(trace.PoolID{uint64(arg[0]), uint64(arg[2])})})
		}
		m.pos += 2
		return value{kind: kInt, ref: int64(arg[0])}
	case opBinInt2:
		m.pos += 3
		return value{kind: kInt, ref: int64(binary.LittleEndian.Uint16(arg))}
	case opBinInt:
		m.pos += 5
		return value{kind: kInt, ref: int64(int32(binary.LittleEndian.Uint32(arg)))}
	case opLong1:
		if n := arg[0]; n <= 8 {
			m.pos += 2 + int(n)
			return value{kind: kInt, ref: signExtend(binary.LittleEndian.Uint64(arg[1:]), n)}
		}
	case opNone:
		m.pos++
		return value{kind: kNone}
	case opNewTrue, opNewFalse:
		m.pos++
		if op == opNewTrue {
			return value{kind: kBool, ref: 1}
		}
		return value{kind: kBool}
	case opEmptyList:
		m.pos++
		return m.newFrames()
	}
	return value{}
}

// finished returns the value in a slot of the memo, kEmpty if there is none.
func (m *machine) finished(slot int) value {
	if slot >= len(m.memo) || m.memo[slot].kind == kOwn {
		return value{}
	}
	v := &m.memo[slot]
	v.shared = true
	return *v
}

// memoize executes a MEMOIZE, if one follows.
func (m *machine) memoize(v value) value {
	if opcode(m.buf[m.pos]) != opMemoize {
		return v
	}
	if len(m.memo) == cap(m.memo) {
		return value{}
	}
	m.pos++
	m.memo = append(m.memo, v)
	return v
}

// newFrames reads what follows EMPTY_LIST: nothing, or frames.
func (m *machine) newFrames() value {
	memoized := len(m.memo)
	v := m.memoize(value{kind: kList, ref: none})
	if m.pos > m.lastOpcode() || v.kind == kEmpty {
		return value{}
	}
	if opcode(m.buf[m.pos]) != opMark {
		return v
	}
	m.pos++
	if !m.listRun(&v) {
		return value{}
	}
	if len(m.memo) > memoized {
		m.memo[memoized] = v
	}
	return v
}

// listRun reads references to frames, from after the MARK to APPENDS, and makes
// the new list a stack. If it cannot, it reports false and has changed nothing.
func (m *machine) listRun(list *value) bool {
	ids, memo := m.run[:0], m.memo
	pos, last := m.pos, m.lastOpcode()
	for len(ids) < maxBatch && pos <= last {
		arg := m.buf[pos+1 : pos+lookahead]
		var slot int
		switch opcode(m.buf[pos]) {
		case opLongBinGet:
			slot = int(binary.LittleEndian.Uint32(arg))
			pos += 5
		case opBinGet:
			slot = int(arg[0])
			pos += 2
		case opAppends:
			m.pos = pos + 1
			*list = value{kind: kStack, ref: int64(m.addStack(ids))}
			return true
		default:
			return false
		}
		if slot >= len(memo) || memo[slot].kind != kFrame {
			return false
		}
		memo[slot].shared = true
		ids = append(ids, trace.FrameID(memo[slot].ref))
	}
	return false
}
