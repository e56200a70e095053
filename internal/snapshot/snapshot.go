// Package snapshot reads and writes the files of
// torch.cuda.memory._dump_snapshot: pickles of what each device's caching
// allocator did and holds.
//
// A pickle is a program for a small stack machine, and Python's machine can be
// told to import and call anything. This one runs only the opcodes that make
// dicts, lists, tuples, strings and numbers, trusts no length, and keeps what
// it allocates within Limits; a file can be wrong but not harmful.
//
// Files of all PyTorch versions since 2.0 are read; docs/snapshot-format.md
// has the format by version. Write writes that of PyTorch 2.11.
package snapshot

import (
	"fmt"
	"io"

	"memorymark/internal/trace"
)

// Snapshot is one file.
type Snapshot struct {
	// Devices is indexed by device and has no nil. Devices that the file does
	// not mention, below one that it does, are empty. All share one
	// trace.Tables.
	Devices  []*trace.Trace
	Protocol int    // pickle protocol of the file
	Encoding string // how the pickle was packed: "plain", "gzip", "zstd" or "xz"
	// Unknown names what the reader left out because it does not know it,
	// sorted, each once: "event.foo" is a key foo of events, "event.action=foo"
	// an action.
	Unknown []string
	// Memory is approximately how many bytes all of it needs.
	Memory int64
}

// Limits bounds the cost of reading a file. The zero value of a field means its
// default.
type Limits struct {
	// Bytes is the largest size of a file, after decompression: 16 GiB.
	Bytes int64
	// Events is the largest number of events of all devices together:
	// 100 million.
	Events int
	// Memory is approximately how much may be held at once, for the result and
	// while reading: 8 GiB. A snapshot needs about as much as its plain file;
	// one that needs more than four times as much is refused in any case.
	Memory int64
}

// withDefaults replaces zero values.
func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 16 << 30
	}
	if l.Events == 0 {
		l.Events = 100_000_000
	}
	if l.Memory == 0 {
		l.Memory = 8 << 30
	}
	return l
}

// Read reads a snapshot, plain or compressed with gzip, zstd or xz. Offsets in
// errors refer to the plain file.
func Read(r io.Reader, limits Limits) (*Snapshot, error) {
	limits = limits.withDefaults()
	in := newSource(r)
	plain, encoding, err := decompress(in, limits)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	ahead := newReadAhead(plain, in)
	defer ahead.close()
	m := newMachine(ahead, limits)
	s := m.snapshot(m.load())
	if m.err != nil {
		return nil, fmt.Errorf("read snapshot: %w", m.err)
	}
	s.Encoding = encoding
	return s, nil
}
