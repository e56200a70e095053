package snapshot

import (
	"encoding/binary"
	"math"

	"memorymark/internal/trace"
)

// The machine runs a pickle. Unlike Python's, it knows what it is reading: a
// dict becomes a typed record when its items arrive, a list of frames becomes a
// stack, and no tree of the file is ever built. What must stay true:
//
//   - It runs only opcodes that make data; none can import or call.
//   - It never recurses, and nothing is allocated on the word of a length:
//     what it keeps is charged against Limits.Memory first.
//   - A container is filled where it was made and then used. A pickle in
//     which one is changed after use, or contains itself, is refused; no
//     pickler writes one for a snapshot.

const (
	// maxDepth bounds the open MARKs; a snapshot nests 6 deep.
	maxDepth = 64
	// maxBatch is how many items CPython's pickler puts into one APPENDS.
	maxBatch = 1000
)

type machine struct {
	input
	limits Limits
	kept   int64 // bytes charged so far, see charge
	proto  int

	stack []value
	marks []int
	memo  []value

	strings  []string
	numberOf map[string]int64 // index of each in strings
	pools    []trace.PoolID
	poolOf   map[trace.PoolID]int64
	lists    []list
	dicts    [][]value // keys and values in turn
	fields   fields
	run      [maxBatch]trace.FrameID // scratch of frameRun
	recent   [256]trace.StackID      // stacks by a few of their frames

	records
}

func newMachine(src *readAhead, limits Limits) *machine {
	m := &machine{
		input:    input{src: src},
		limits:   limits,
		numberOf: make(map[string]int64, 1024),
		poolOf:   make(map[trace.PoolID]int64),
		records:  newRecords(),
	}
	for _, word := range vocabulary {
		m.number(word)
	}
	return m
}

// load runs the pickle and returns the object it makes.
func (m *machine) load() value {
	m.begin()
	for m.err == nil {
		m.refill()
		if !m.pushRun() {
			continue
		}
		op := opcode(m.buf[m.pos])
		m.pos++
		if op == opStop {
			return m.stop()
		}
		m.step(op)
	}
	return value{}
}

// pushRun runs the opcodes that push a number, a string from the memo or an
// empty container: most of them. It reports whether it reached another opcode;
// otherwise the window or the stack needs a refill. Its state is in local
// variables, which the compiler keeps in registers; append moves neither stack
// nor memo, so that only their lengths need to be stored.
func (m *machine) pushRun() bool {
	buf, pos, stack, memo := m.buf, m.pos, m.stack, m.memo
	last := m.lastOpcode()
run:
	for pos <= last && len(stack) < cap(stack) {
		arg := buf[pos+1 : pos+lookahead]
		var v value
		switch op := opcode(buf[pos]); op {
		case opBinGet, opLongBinGet:
			slot, size := int(arg[0]), 2
			if op == opLongBinGet {
				slot, size = int(binary.LittleEndian.Uint32(arg)), 5
			}
			if slot >= len(memo) || memo[slot].kind != kString {
				break run
			}
			v = memo[slot]
			pos += size
		case opBinInt1:
			v = value{kind: kInt, ref: int64(arg[0])}
			pos += 2
		case opBinInt2:
			v = value{kind: kInt, ref: int64(binary.LittleEndian.Uint16(arg))}
			pos += 3
		case opBinInt:
			v = value{kind: kInt, ref: int64(int32(binary.LittleEndian.Uint32(arg)))}
			pos += 5
		case opLong1:
			n := arg[0]
			if n > 8 {
				break run
			}
			v = value{kind: kInt, ref: signExtend(binary.LittleEndian.Uint64(arg[1:]), n)}
			pos += 2 + int(n)
		case opEmptyList, opEmptyDict:
			v = value{kind: kList, ref: none}
			if op == opEmptyDict {
				v.kind = kDict
			}
			pos++
			if opcode(arg[0]) == opMemoize && len(memo) < cap(memo) {
				memo = append(memo, v) // as put does
				v = value{kind: kOwn, ref: int64(len(memo) - 1)}
				pos++
			}
		default:
			break run
		}
		stack = append(stack, v)
	}
	m.pos, m.stack, m.memo = pos, m.stack[:len(stack)], m.memo[:len(memo)]
	return pos <= last && len(stack) < cap(stack)
}

// refill grows the stack and advances the window.
func (m *machine) refill() {
	if len(m.stack) == cap(m.stack) {
		m.stack = extend(m, m.stack)
	}
	if m.end-m.pos < lookahead {
		m.fill(lookahead)
		if m.pos >= m.end {
			m.failTruncated()
		}
	}
}

// step runs one opcode that pushRun left.
func (m *machine) step(op opcode) {
	switch op {
	case opBinGet:
		m.get(m.byte1())
	case opLongBinGet:
		m.get(m.uint32())
	case opMemoize:
		m.put(int64(len(m.memo)))
	case opBinPut:
		m.put(m.byte1())
	case opLongBinPut:
		m.put(m.uint32())
	case opMark:
		m.mark()
	case opLong1:
		m.push(m.long())
	case opBinFloat:
		m.push(value{kind: kFloat, ref: int64(math.Float64bits(m.float()))})
	case opNone:
		m.push(value{kind: kNone})
	case opNewTrue:
		m.push(value{kind: kBool, ref: 1})
	case opNewFalse:
		m.push(value{kind: kBool})
	case opShortBinUnicode:
		m.pushString(m.byte1())
	case opBinUnicode:
		m.pushString(m.uint32())
	case opSetItems:
		m.setItems(m.popMark())
	case opAppends:
		m.appends(m.popMark())
	case opSetItem:
		m.setItems(len(m.stack) - 2)
	case opAppend:
		m.appends(len(m.stack) - 1)
	case opList:
		m.insert(m.popMark(), value{kind: kList, ref: none}, m.appends)
	case opDict:
		m.insert(m.popMark(), value{kind: kDict, ref: none}, m.setItems)
	case opEmptyTuple:
		m.push(value{kind: kTuple})
	case opTuple1:
		m.tuple(len(m.stack) - 1)
	case opTuple2:
		m.tuple(len(m.stack) - 2)
	case opTuple3:
		m.tuple(len(m.stack) - 3)
	case opTuple:
		m.tuple(m.popMark())
	case opFrame:
		m.pos += 8 // frames only help a reader that has no buffer
	default:
		m.pos--
		m.fail("%s", op.refusal())
	}
}
