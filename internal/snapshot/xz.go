package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// newXZReader unpacks an xz file of one stream. The decoder allocates the
// dictionary that a block's header asks for, up to 4 GiB, so the headers are
// read before it sees them.
func newXZReader(r io.Reader) (io.Reader, error) {
	return xz.ReaderConfig{SingleStream: true}.NewReader(&xzGuard{r: r, want: 12})
}

// xzGuard passes an xz stream on and follows its structure as far as it takes
// to find the headers of the blocks (xz-file-format-1.2.1, sections 2 and 3): a
// block is a header, chunks of LZMA2, padding and a checksum. The decoder
// checks everything else.
type xzGuard struct {
	r     io.Reader
	state xzState
	part  []byte // the part that is being read,
	want  int    // and its size
	skip  int    // bytes to pass unexamined
	size  int    // of the block's data so far
	check int    // size of the blocks' checksums
}

type xzState uint8

const (
	xzStreamHeader xzState = iota
	xzBlockHeaderSize
	xzBlockHeader
	xzChunkControl
	xzChunkSize   // of a chunk that is not compressed
	xzChunkSizes  // of one that is
	xzAfterBlocks // the index and the footer
)

// Read implements io.Reader.
func (g *xzGuard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	for b := p[:n]; len(b) > 0 && g.state != xzAfterBlocks; {
		if k := min(g.skip, len(b)); k > 0 {
			g.skip -= k
			b = b[k:]
			continue
		}
		k := min(g.want-len(g.part), len(b))
		g.part = append(g.part, b[:k]...)
		b = b[k:]
		if len(g.part) == g.want {
			if err := g.next(); err != nil {
				return 0, err
			}
			g.part = g.part[:0]
		}
	}
	return n, err
}

// next handles a part and determines what follows.
func (g *xzGuard) next() error {
	switch g.state {
	case xzStreamHeader:
		g.check = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[g.part[7]&15]
		g.expect(xzBlockHeaderSize, 1)
	case xzBlockHeaderSize:
		if g.part[0] == 0 {
			g.state = xzAfterBlocks
			return nil
		}
		g.expect(xzBlockHeader, int(g.part[0])*4+3)
	case xzBlockHeader:
		g.size = 0
		g.expect(xzChunkControl, 1)
		return checkDictionary(g.part)
	case xzChunkControl:
		g.size++
		switch control := g.part[0]; {
		case control == 0: // the end of the block
			g.skip = -g.size&3 + g.check
			g.expect(xzBlockHeaderSize, 1)
		case control < 0x80:
			g.expect(xzChunkSize, 2)
		case control < 0xc0:
			g.expect(xzChunkSizes, 4)
		default: // a byte of properties follows the sizes
			g.expect(xzChunkSizes, 5)
		}
	case xzChunkSize:
		g.chunk(g.part)
	case xzChunkSizes: // the size unpacked comes first
		g.chunk(g.part[2:])
	case xzAfterBlocks:
	}
	return nil
}

// chunk skips a chunk; its header holds the size minus one.
func (g *xzGuard) chunk(size []byte) {
	g.skip = int(binary.BigEndian.Uint16(size)) + 1
	g.size += len(g.part) + g.skip
	g.expect(xzChunkControl, 1)
}

func (g *xzGuard) expect(state xzState, size int) { g.state, g.want = state, size }

// checkDictionary refuses the header of a block, less its first byte, that asks
// for too large a dictionary. The decoder refuses any header that this does not
// understand.
func checkDictionary(header []byte) error {
	rest := header[1:]
	for _, size := range []byte{0x40, 0x80} { // the compressed and uncompressed size, if given
		if header[0]&size != 0 {
			_, n := binary.Uvarint(rest)
			rest = rest[max(n, 0):]
		}
	}
	const lzma2 = 0x21
	if len(rest) < 3 || rest[0] != lzma2 || rest[1] != 1 {
		return nil
	}
	if size, err := lzma.DecodeDictCap(rest[2]); err == nil && size > maxWindow {
		return fmt.Errorf("a dictionary of %d bytes: the limit is %d", size, maxWindow)
	}
	return nil
}
