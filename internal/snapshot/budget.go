package snapshot

import "reflect"

// What a file may cost is bounded twice: by Limits.Memory, and by the file
// itself. An event of a real snapshot has some 100 bytes in the file and takes
// about as many in memory; but a pickle can also be a million opcodes, each a
// byte and each good for a value on the stack, packed by gzip to a thousandth.
const (
	// perByte is how much may be kept for each byte that was read.
	perByte = 4
	// anyway is how much may be kept in any case.
	anyway = 64 << 20
)

// charge accounts for memory about to be kept.
func (m *machine) charge(bytes int64) {
	m.kept += bytes
	if m.kept > m.limits.Memory {
		m.fail("the snapshot takes more than %d bytes of memory, the limit", m.limits.Memory)
	}
	if used := m.kept - m.spare(); used > anyway+perByte*m.offset() {
		m.fail("%d bytes of the file take %d bytes of memory: no snapshot does that", m.offset(), used)
	}
}

// spare is what was charged for room in tables that is not used yet.
func (m *machine) spare() int64 {
	return int64(cap(m.stack)-len(m.stack)+cap(m.memo)-len(m.memo))*valueSize + int64(cap(m.events)-len(m.events))*eventSize
}

// extend returns a table with room for more. How full it got so far into the
// file tells how much room the rest needs; if that is not known, or more than
// is allowed, it grows by a quarter. Guessing well matters: most of the time
// that a copy takes is for memory touched the first time.
func extend[T any](m *machine, table []T) []T {
	n, size := int64(len(table)), int64(reflect.TypeFor[T]().Size())
	room := n + n/4 + 1024
	if done := m.done(); done > 0 && n > 0 {
		guess := int64(float64(n) / done * 1.05)
		if guess > room && m.kept+guess*size <= m.limits.Memory {
			room = guess
		}
	}
	// Until it is copied there are two of it.
	if m.charge(0); m.kept+room*size > m.limits.Memory {
		m.charge(room * size)
	}
	if m.err != nil {
		return table
	}
	m.kept += (room - n) * size
	return append(make([]T, 0, room), table...)
}
