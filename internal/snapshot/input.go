package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
)

const (
	// lookahead is more than any opcode with its argument, strings aside. The
	// buffer has as many spare bytes after its end, so that arguments are read
	// without a bounds check; running past the end is noticed at the next
	// opcode.
	lookahead = 16
	// maxString is longer than any string PyTorch writes.
	maxString = 1 << 20
)

// input is a file seen through a window.
type input struct {
	src      *readAhead
	buf      []byte // buf[pos:end] is read and not used; lookahead bytes follow end
	pos, end int
	chunk    []byte // the chunk that buf is, nil if it is none
	base     int64  // offset of buf[0] in the file
	eof      bool
	progress float64 // how much of the file is in the window or before it, see source
	err      error   // the first error; once set, what is read is meaningless
}

// offset is the position in the (decompressed) file.
func (in *input) offset() int64 { return in.base + int64(in.pos) }

// lastOpcode is the last position in the window at which an opcode and its
// argument can be read.
func (in *input) lastOpcode() int {
	if in.eof {
		return in.end - 1
	}
	return in.end - lookahead
}

// done is how much of the file was used, from 0 to 1, or 0 if its size is not
// known.
func (in *input) done() float64 {
	return in.progress * float64(in.offset()) / float64(in.base+int64(in.end)+1)
}

// fail records an error at the current position, unless there is one already.
func (in *input) fail(format string, args ...any) {
	in.failAt(in.offset(), format, args...)
}

func (in *input) failAt(offset int64, format string, args ...any) {
	if in.err == nil {
		in.err = fmt.Errorf("byte %d: "+format, append([]any{offset}, args...)...)
	}
}

// fill advances the window until it has n bytes or the file ends.
func (in *input) fill(n int) {
	if in.pos > in.end {
		in.failTruncated()
		return
	}
	for in.end-in.pos < n && !in.eof {
		in.advance(in.src.next())
	}
}

// advance appends a chunk to the rest of the window: the rest is copied to the
// headroom of the chunk, or, if it is too long, the chunk is appended to it.
func (in *input) advance(c chunk) {
	old := in.chunk
	if rest := in.buf[in.pos:in.end]; len(rest) <= headroom {
		start := headroom - len(rest)
		copy(c.buf[start:], rest)
		in.base += int64(in.pos - start)
		in.buf, in.chunk = c.buf, c.buf
		in.pos, in.end = start, headroom+c.n
	} else {
		if old != nil { // move to a buffer that can grow
			in.base += int64(in.pos)
			in.buf, in.chunk = slices.Clone(rest), nil
			in.pos, in.end = 0, len(rest)
		}
		in.buf = append(in.buf[:in.end], c.buf[headroom:headroom+c.n]...)
		in.end = len(in.buf)
		in.buf = append(in.buf, make([]byte, lookahead)...)
		in.src.recycle(c.buf)
	}
	if old != nil {
		in.src.recycle(old)
	}
	clear(in.buf[in.end : in.end+lookahead])
	in.progress, in.eof = c.progress, c.err != nil
	if c.err != nil && c.err != io.EOF { //nolint:errorlint // readers return io.EOF itself
		in.failAt(in.base+int64(in.end), "%w", c.err)
	}
}

func (in *input) failTruncated() {
	in.failAt(in.base+int64(in.end), "the file ends in the middle: %w", io.ErrUnexpectedEOF)
}

// byte1, uint32 and float read arguments of opcodes.

func (in *input) byte1() int64 {
	v := in.buf[in.pos]
	in.pos++
	return int64(v)
}

func (in *input) uint32() int64 {
	v := binary.LittleEndian.Uint32(in.buf[in.pos:])
	in.pos += 4
	return int64(v)
}

func (in *input) float() float64 {
	v := binary.BigEndian.Uint64(in.buf[in.pos:])
	in.pos += 8
	return math.Float64frombits(v)
}

// long reads the argument of LONG1: a length and as many bytes of a
// little-endian two's complement number. An unsigned 64-bit number needs at
// most nine bytes.
func (in *input) long() value {
	n := byte(in.byte1())
	if n > 9 {
		in.fail("LONG1 of %d bytes: numbers have at most 64 bits", n)
		return value{}
	}
	low, ninth := binary.LittleEndian.Uint64(in.buf[in.pos:]), in.buf[in.pos+8]
	in.pos += int(n)
	switch {
	case n < 9:
		return value{kind: kInt, ref: signExtend(low, n)}
	case ninth == 0 && low > math.MaxInt64:
		return value{kind: kBig, ref: int64(low)}
	case ninth != byte(int64(low)>>63):
		in.fail("LONG1: the number does not fit in 64 bits")
	}
	return value{kind: kInt, ref: int64(low)}
}

// signExtend returns the number in the lower n bytes, n up to 8.
func signExtend(bits uint64, n byte) int64 {
	unused := 64 - 8*n
	return int64(bits<<unused) >> unused
}

// bytes returns the next n bytes; they are valid until the next read.
func (in *input) bytes(n int64) []byte {
	if n > maxString {
		in.fail("a string of %d bytes: the limit is %d", n, maxString)
		return nil
	}
	if int64(in.end-in.pos) < n {
		in.fill(int(n))
		if int64(in.end-in.pos) < n {
			in.failTruncated()
			return nil
		}
	}
	b := in.buf[in.pos : in.pos+int(n)]
	in.pos += int(n)
	return b
}

// atEnd reports whether nothing follows. It also lets decompressors verify
// their checksums, which they do at the end.
func (in *input) atEnd() bool {
	if in.pos == in.end {
		in.fill(1)
	}
	return in.pos >= in.end
}
