package snapshot

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the window that a zstd or xz file may require. The highest
// levels, 22 and 9, ask for 128 MiB and 64 MiB; gzip needs 32 KiB.
const maxWindow = 128 << 20

// ErrTooLarge is the error for a file beyond the Limits.
var ErrTooLarge = errors.New("the file is larger than the limit")

// source counts what is read of a file and knows its size if that can be known.
type source struct {
	io.Reader
	read, size int64
}

func newSource(r io.Reader) *source {
	s := &source{Reader: r}
	switch r := r.(type) {
	case interface{ Len() int }: // bytes.Reader, strings.Reader, bytes.Buffer
		s.size = int64(r.Len())
	case interface{ Size() int64 }: // as the caller states it
		s.size = r.Size()
	case interface{ Stat() (fs.FileInfo, error) }: // os.File, fs.File
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			s.size = info.Size()
		}
	}
	return s
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.read += int64(n)
	return n, err
}

// progress is how much of the file was read, from 0 to 1, or 0 if its size is
// not known. It is used to guess sizes and may be wrong.
func (s *source) progress() float64 {
	if s.size <= 0 {
		return 0
	}
	return min(1, float64(s.read)/float64(s.size))
}

// decompress detects the compression of a file by its first bytes, and unpacks
// it.
func decompress(r io.Reader, limits Limits) (plain io.ReadCloser, encoding string, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	magic, err := in.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	switch {
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		encoding = "gzip"
		plain, err = gzip.NewReader(in)
	case bytes.HasPrefix(magic, []byte("\x28\xb5\x2f\xfd")):
		encoding = "zstd"
		var d *zstd.Decoder
		d, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			plain = d.IOReadCloser()
		}
	case bytes.HasPrefix(magic, []byte("\xfd7zXZ\x00")):
		encoding = "xz"
		var d io.Reader
		d, err = newXZReader(in)
		plain = io.NopCloser(d)
	default:
		encoding, err = "plain", nil
		plain = io.NopCloser(in)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", encoding, err)
	}
	return &limitedReader{plain, limits.Bytes}, encoding, nil
}

// limitedReader is an io.LimitReader that distinguishes the limit from the end.
type limitedReader struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (r *limitedReader) Read(p []byte) (int, error) {
	if r.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err := r.ReadCloser.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

// foreign describes a file that is not a pickle.
func foreign(head []byte) string {
	const want = "a snapshot is the pickle that torch.cuda.memory._dump_snapshot writes"
	text := strings.TrimLeft(string(head), " \t\r\n\ufeff")
	switch {
	case len(head) == 0:
		return "the file is empty; " + want
	case bytes.HasPrefix(head, []byte("PK")):
		return "this is a zip archive, as torch.save writes for checkpoints; " + want
	case strings.HasPrefix(text, "{"), strings.HasPrefix(text, "["):
		return "this looks like JSON; " + want
	case strings.HasPrefix(text, "<"):
		return "this looks like HTML; " + want
	default:
		return "not a pickle of protocol 2 or later; " + want
	}
}
