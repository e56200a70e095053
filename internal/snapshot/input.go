package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

const (
	// bufferSize is the window through which a file is read.
	bufferSize = 256 << 10
	// lookahead is more than any opcode with its argument, strings aside. The
	// buffer has as many spare bytes behind its end, so that arguments are
	// read without asking whether they are there; running past the end is
	// noticed at the next opcode.
	lookahead = 16
	// maxIdle is how many reads in a row may give nothing.
	maxIdle = 100
	// maxString is longer than any string PyTorch writes.
	maxString = 1 << 20
)

// input is a file seen through a window.
type input struct {
	src      io.Reader
	buf      []byte // buf[pos:end] is read and not used; lookahead bytes follow end
	pos, end int
	base     int64 // offset of buf[0] in the file
	eof      bool
	progress func() float64 // see source.progress
	err      error          // the first error; once set, what is read means nothing
}

func newInput(src io.Reader, progress func() float64) input {
	return input{src: src, progress: progress, buf: make([]byte, bufferSize+lookahead)}
}

// offset is the position in the (decompressed) file.
func (in *input) offset() int64 { return in.base + int64(in.pos) }

// lastOpcode is the last place in the window at which an opcode and its
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
	return in.progress() * float64(in.offset()) / float64(in.base+int64(in.end)+1)
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

// fill moves the window on, until n bytes are in it or the file ends.
func (in *input) fill(n int) {
	if in.pos > in.end {
		in.truncated()
		return
	}
	kept := copy(in.buf, in.buf[in.pos:in.end])
	in.base += int64(in.pos)
	in.pos, in.end = 0, kept
	if n+lookahead > len(in.buf) {
		in.buf = append(in.buf[:kept], make([]byte, n+lookahead-kept)...)
	}
	for idle := 0; in.end < n && !in.eof; {
		k, err := in.src.Read(in.buf[in.end : len(in.buf)-lookahead])
		in.end += k
		if idle++; k > 0 {
			idle = 0
		}
		if err == nil && idle == maxIdle {
			err = io.ErrNoProgress
		}
		in.eof = err != nil
		if err != nil && err != io.EOF {
			in.failAt(in.base+int64(in.end), "%w", err)
		}
	}
	clear(in.buf[in.end : in.end+lookahead])
}

func (in *input) truncated() {
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
// little-endian two's complement number. Nine bytes are as many as an
// unsigned 64-bit number takes.
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
			in.truncated()
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
