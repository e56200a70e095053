package snapshot

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"memorymark/internal/trace"
)

// This file holds what the opcodes do. An operation that finds something
// missing or misplaced sets the error of the input, and the machine stops.

// begin reads the head of a pickle, and reports what else a file is.
func (m *machine) begin() {
	m.fill(lookahead)
	head := m.buf[m.pos:m.end]
	if m.err == nil && (len(head) < 2 || opcode(head[0]) != opProto) {
		m.fail("%s", foreign(head))
		return
	}
	m.pos++
	m.proto = int(m.byte1())
	if m.err == nil && (m.proto < 2 || m.proto > 5) {
		m.failAt(1, "pickle protocol %d: snapshots have 2 to 5", m.proto)
	}
}

// stop returns what the pickle made.
func (m *machine) stop() value {
	if len(m.stack) != 1 || len(m.marks) != 0 {
		m.fail("STOP with %d objects where one is expected", len(m.stack))
		return value{}
	}
	if !m.atEnd() {
		m.fail("there is more after the end of the pickle")
	}
	return m.take(m.stack[0])
}

func (m *machine) push(v value) {
	if len(m.stack) == cap(m.stack) {
		m.stack = extend(m, m.stack)
	}
	m.stack = append(m.stack, v)
}

// mark opens a batch of items. The items of a new dict, and frames for a new
// list, are most of a snapshot: they are read at once where possible.
func (m *machine) mark() {
	if len(m.marks) == maxDepth {
		m.fail("more than %d nested MARKs", maxDepth)
		return
	}
	if next := opcode(m.buf[m.pos]); len(m.stack) > 0 && (next == opBinGet || next == opLongBinGet) {
		top := &m.stack[len(m.stack)-1]
		if top.kind == kOwn {
			top = &m.memo[top.ref]
		}
		if top.ref == none && !top.shared && (top.kind == kDict && m.dictRun(top) || top.kind == kList && m.listRun(top)) {
			return
		}
	}
	m.marks = append(m.marks, len(m.stack))
}

// popMark closes the latest batch and returns where on the stack it starts.
func (m *machine) popMark() int {
	if len(m.marks) == 0 {
		m.fail("the end of a batch without its MARK")
		return len(m.stack)
	}
	first := m.marks[len(m.marks)-1]
	m.marks = m.marks[:len(m.marks)-1]
	return first
}

// floor is the lowest index of the stack that an opcode may touch.
func (m *machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

// get pushes the value in a slot of the memo.
func (m *machine) get(slot int64) {
	if slot >= int64(len(m.memo)) {
		m.fail("memo slot %d is empty", slot)
		return
	}
	v := &m.memo[slot]
	if v.kind == kOwn {
		v = &m.memo[v.ref]
	}
	if v.kind == kEmpty {
		m.fail("memo slot %d is empty", slot)
		return
	}
	v.shared = true
	m.push(*v)
}

// put stores the top of the stack in a slot of the memo. A container moves
// there, so that it stays one object when it is filled.
func (m *machine) put(slot int64) {
	if len(m.stack) <= m.floor() {
		m.fail("nothing to memoize")
		return
	}
	// A memoized value needs at least two bytes of the file, so the file itself
	// bounds the memo.
	if slot > m.offset()/2 {
		m.fail("memo slot %d in the first %d bytes", slot, m.offset())
		return
	}
	for slot >= int64(len(m.memo)) {
		if len(m.memo) == cap(m.memo) {
			m.memo = extend(m, m.memo)
		}
		if m.err != nil {
			return
		}
		m.memo = append(m.memo, value{})
	}
	if m.memo[slot].kind != kEmpty {
		m.fail("memo slot %d is written twice", slot)
		return
	}
	top := &m.stack[len(m.stack)-1]
	m.memo[slot] = *top
	if top.kind >= kList && top.kind < kOwn && !top.shared {
		*top = value{kind: kOwn, ref: slot}
	}
}

// take returns the object that a value on the stack refers to, when it becomes
// part of another.
func (m *machine) take(v value) value {
	if v.kind == kOwn {
		v = m.memo[v.ref]
	}
	v.shared = false
	return v
}

// target returns the container below the stack index first, for a change.
func (m *machine) target(first int) *value {
	if first-1 < m.floor() || first > len(m.stack) {
		m.fail("the stack is too short")
		return nil
	}
	t := &m.stack[first-1]
	if t.kind == kOwn {
		t = &m.memo[t.ref]
	}
	if t.shared {
		m.fail("%s is changed after it was referred to: no snapshot does that, or has cycles", t.kind)
		return nil
	}
	return t
}

// appends moves the values from stack index first up into the list below.
func (m *machine) appends(first int) {
	t := m.target(first)
	if t == nil {
		return
	}
	switch {
	case t.kind == kStack: // the second batch of a very deep stack
		*t = m.unfold(*t)
	case t.kind == kList && t.ref == none && first < len(m.stack):
		*t = m.newList()
	case t.kind != kList:
		m.fail("items appended to %s", t.kind)
		return
	}
	for _, v := range m.stack[first:] {
		m.charge(m.lists[t.ref].add(m.take(v)) * valueSize)
	}
	m.stack = m.stack[:first]
}

func (m *machine) newList() value {
	m.charge(64)
	m.lists = append(m.lists, list{})
	return value{kind: kList, ref: int64(len(m.lists) - 1)}
}

// unfold turns a stack back into a list.
func (m *machine) unfold(stack value) value {
	v := m.newList()
	for _, id := range m.tables.Stacks.IDs(trace.StackID(stack.ref)) {
		m.charge(m.lists[v.ref].add(value{kind: kFrame, ref: int64(id)}) * valueSize)
	}
	return v
}

// setItems moves the keys and values from stack index first on into the dict
// below.
func (m *machine) setItems(first int) {
	t := m.target(first)
	if t == nil {
		return
	}
	items := m.stack[first:]
	if len(items)%2 != 0 {
		m.fail("a key without a value")
		return
	}
	m.setRecord(t, items)
	m.stack = m.stack[:first]
}

// insert puts an empty container below the batch that starts at first and
// lets fill move the batch into it.
func (m *machine) insert(first int, container value, fill func(first int)) {
	m.push(value{})
	copy(m.stack[first+1:], m.stack[first:])
	m.stack[first] = container
	fill(first + 1)
}

// tuple makes a tuple of the values from stack index first on.
func (m *machine) tuple(first int) {
	if first < m.floor() {
		m.fail("the stack is too short")
		return
	}
	items := m.stack[first:]
	for i := range items {
		items[i] = m.take(items[i])
	}
	t := value{kind: kTuple}
	if len(items) == 2 && items[0].isInteger() && items[1].isInteger() {
		t = value{kind: kPool, ref: m.pool(trace.PoolID{uint64(items[0].ref), uint64(items[1].ref)})}
	}
	m.stack = m.stack[:first]
	m.push(t)
}

// pool numbers a pair of integers.
func (m *machine) pool(id trace.PoolID) int64 {
	if n, ok := m.poolOf[id]; ok {
		return n
	}
	m.charge(64)
	m.pools = append(m.pools, id)
	m.poolOf[id] = int64(len(m.pools) - 1)
	return m.poolOf[id]
}

// pushString pushes the string of the next n bytes.
func (m *machine) pushString(n int64) {
	b := m.bytes(n)
	if m.err != nil {
		return
	}
	i, ok := m.numberOf[string(b)]
	if !ok {
		i = m.number(printable(string(b)))
	}
	m.push(value{kind: kString, ref: i})
}

// printable replaces what is not text: Python can pickle file names that are not
// UTF-8, and a hostile file can have names that clear the terminal or reverse
// the direction of text. Newlines stay: the tracebacks of forward_frames have
// them.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return utf8.RuneError
		default:
			return r
		}
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// number returns the number of a string, a new one if it is new.
func (m *machine) number(s string) int64 {
	if i, ok := m.numberOf[s]; ok {
		return i
	}
	m.charge(int64(len(s)) + 64)
	i := int64(len(m.strings))
	m.strings = append(m.strings, s)
	m.numberOf[s] = i
	return i
}
