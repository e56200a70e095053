package snapshot

import (
	"bufio"
	"encoding/binary"
	"math"
	"math/bits"
)

// pickler writes the opcodes of a pickle of protocol 4. Errors stay in the
// writer until it is flushed.
type pickler struct {
	w       *bufio.Writer
	next    uint32            // the next slot of the memo
	slotOf  map[string]uint32 // of strings
	scratch [9]byte
}

func (p *pickler) op(op opcode) { p.w.WriteByte(byte(op)) }

// op1 writes an opcode with an argument of one byte.
func (p *pickler) op1(op opcode, arg byte) {
	p.w.WriteByte(byte(op))
	p.w.WriteByte(arg)
}

// memoize stores the latest object in the memo and returns its slot.
func (p *pickler) memoize() uint32 {
	p.op(opMemoize)
	p.next++
	return p.next - 1
}

func (p *pickler) get(slot uint32) {
	if slot <= math.MaxUint8 {
		p.op1(opBinGet, byte(slot))
		return
	}
	p.op(opLongBinGet)
	p.w.Write(binary.LittleEndian.AppendUint32(p.scratch[:0], slot))
}

// string writes a string, by reference if it was written before.
func (p *pickler) string(s string) {
	if slot, ok := p.slotOf[s]; ok {
		p.get(slot)
		return
	}
	if len(s) <= math.MaxUint8 {
		p.op1(opShortBinUnicode, byte(len(s)))
	} else {
		p.op(opBinUnicode)
		p.w.Write(binary.LittleEndian.AppendUint32(p.scratch[:0], uint32(len(s))))
	}
	p.w.WriteString(s)
	p.slotOf[s] = p.memoize()
}

// int writes a number in the shortest form, as Python does.
func (p *pickler) int(n int64) {
	switch {
	case 0 <= n && n <= math.MaxUint8:
		p.op1(opBinInt1, byte(n))
	case 0 <= n && n <= math.MaxUint16:
		p.op(opBinInt2)
		p.w.Write(binary.LittleEndian.AppendUint16(p.scratch[:0], uint16(n)))
	case math.MinInt32 <= n && n <= math.MaxInt32:
		p.op(opBinInt)
		p.w.Write(binary.LittleEndian.AppendUint32(p.scratch[:0], uint32(n)))
	default:
		p.long(uint64(n), bits.Len64(uint64(n^n>>63)))
	}
}

func (p *pickler) uint(n uint64) {
	if n <= math.MaxInt64 {
		p.int(int64(n))
		return
	}
	p.long(n, 64)
}

// long writes a signed number of size bytes.
func (p *pickler) long(n uint64, size int) {
	bytes := size/8 + 1
	p.op1(opLong1, byte(bytes))
	p.w.Write(append(binary.LittleEndian.AppendUint64(p.scratch[:0], n), 0)[:bytes])
}

func (p *pickler) bool(b bool) {
	if b {
		p.op(opNewTrue)
	} else {
		p.op(opNewFalse)
	}
}

func (p *pickler) float(f float64) {
	p.op(opBinFloat)
	p.w.Write(binary.BigEndian.AppendUint64(p.scratch[:0], math.Float64bits(f)))
}

// dict writes a dict; items writes its keys and values in turn. Dicts are not
// memoized: only frames are shared, and their writer memoizes them.
func (p *pickler) dict(items func()) {
	p.op(opEmptyDict)
	p.op(opMark)
	items()
	p.op(opSetItems)
}

// list writes a list of n items in batches, as Python does: readers may hold a
// batch at a time.
func (p *pickler) list(n int, item func(i int)) {
	p.op(opEmptyList)
	p.items(n, item)
}

func (p *pickler) items(n int, item func(i int)) {
	for i := range n {
		if i%maxBatch == 0 {
			p.op(opMark)
		}
		item(i)
		if i%maxBatch == maxBatch-1 || i == n-1 {
			p.op(opAppends)
		}
	}
}
