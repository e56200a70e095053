// Package snapshot reads and writes the files of
// torch.cuda.memory._dump_snapshot. Pickles are programs; this reader executes
// none of it and bounds what a file may cost.
package snapshot

import (
	"io"

	"memorymark/internal/snapshot"
)

type (
	// Snapshot is what a file holds: a trace for each device.
	Snapshot = snapshot.Snapshot
	// Limits bounds what a file may cost. The zero value of a field stands for
	// its default.
	Limits = snapshot.Limits
)

// Read reads a snapshot, plain or compressed with gzip, zstd or xz.
func Read(r io.Reader, limits Limits) (*Snapshot, error) { return snapshot.Read(r, limits) }

// Write writes a snapshot that PyTorch's own viewer opens.
func Write(w io.Writer, s *Snapshot) error { return snapshot.Write(w, s) }
