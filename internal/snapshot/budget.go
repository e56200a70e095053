package snapshot

import "reflect"

// The memory of a file is bounded twice: by Limits.Memory, and by the size of
// the file. An event of a real snapshot has some 100 bytes in the file and
// about as many in memory; but a pickle can also be a million one-byte opcodes
// that each push a value, packed by gzip to a thousandth.
const (
	// perByte is how many bytes may be kept for each byte read.
	perByte = 4
	// anyway is how many bytes may be kept in any case.
	anyway = 64 << 20
)

// charge accounts for memory that is about to be kept.
func (m *machine) charge(bytes int64) {
	m.kept += bytes
	if m.kept > m.limits.Memory {
		m.fail("%w: it takes more than %d bytes of memory", ErrTooLarge, m.limits.Memory)
	}
	if used := m.kept - m.spare(); used > anyway+perByte*m.offset() {
		m.fail("%d bytes of the file take %d bytes of memory: no snapshot does that", m.offset(), used)
	}
}

// spare returns how much was charged for unused capacity of tables.
func (m *machine) spare() int64 {
	return int64(cap(m.stack)-len(m.stack)+cap(m.memo)-len(m.memo))*valueSize + int64(cap(m.events)-len(m.events))*eventSize
}

// extend returns a table with more capacity. Its length so far and the progress
// in the file predict what the rest needs; if that is unknown, or more than is
// allowed, it grows by a quarter. Guessing well matters: most of the time of a
// copy goes into touching new memory.
func extend[T any](m *machine, table []T) []T {
	n, size := int64(len(table)), int64(reflect.TypeFor[T]().Size())
	extra := n + n/4 + 1024
	if done := m.done(); done > 0 && n > 0 {
		guess := int64(float64(n) / done * 1.05)
		if guess > extra && m.kept+guess*size <= m.limits.Memory {
			extra = guess
		}
	}
	// During the copy there are two tables.
	if m.charge(0); m.kept+extra*size > m.limits.Memory {
		m.charge(extra * size)
	}
	if m.err != nil {
		return table
	}
	m.kept += (extra - n) * size
	return append(make([]T, 0, extra), table...)
}
