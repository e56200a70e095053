package snapshot

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"memorymark/internal/testmachine"
)

// TestXZBlocks reads files of several blocks, made by
//
//	xz --block-size=700 --check=… (-T2 for blocks-threads.xz)
//
// from torch211.p4.pickle, as they are and with each block in turn asking for
// a dictionary of 4 GiB.
func TestXZBlocks(t *testing.T) {
	plain := testmachine.ReadFile(t, "testdata/shapes/torch211.p4.pickle")
	for _, path := range files(t, "testdata/xz/*.xz") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			file := testmachine.ReadFile(t, path)
			for _, r := range []io.Reader{bytes.NewReader(file), iotest.OneByteReader(bytes.NewReader(file))} {
				d, err := newXZReader(r)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(d); err != nil || !bytes.Equal(got, plain) {
					t.Errorf("%d bytes of %d, %v", len(got), len(plain), err)
				}
			}
			blocks := 0
			for at := range file {
				bad, ok := largeDictionary(file, at)
				if !ok {
					continue
				}
				blocks++
				_, err := Read(bytes.NewReader(bad), Limits{})
				if err == nil || !strings.Contains(err.Error(), "a dictionary of 4294967295 bytes") {
					t.Errorf("block header at byte %d: %v", at, err)
				}
			}
			if blocks != 4 {
				t.Errorf("%d blocks were tried, want 4", blocks)
			}
		})
	}
}

// largeDictionary makes the block whose header is at a place ask for 4 GiB.
func largeDictionary(file []byte, at int) (bad []byte, ok bool) {
	size := (int(file[at]) + 1) * 4
	if at%4 != 0 || at+size > len(file) || size < 12 {
		return nil, false
	}
	bad = bytes.Clone(file)
	header, sum := bad[at:at+size-4], bad[at+size-4:at+size]
	filter := bytes.Index(header, []byte{0x21, 1})
	if filter < 0 || crc32.ChecksumIEEE(header) != binary.LittleEndian.Uint32(sum) {
		return nil, false
	}
	header[filter+2] = 40
	binary.LittleEndian.PutUint32(sum, crc32.ChecksumIEEE(header))
	return bad, true
}
