package emulate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"memorymark/internal/bytesize"
)

// Together is the moment at which processes that share a card held most of it.
type Together struct {
	Device int            `json:"device"`
	Bytes  bytesize.Bytes `json:"bytes"`
	Held   []Holding      `json:"held"` // the largest first
}

// Holding is what one process held then: its context, and what it had from the driver.
type Holding struct {
	PID   int            `json:"pid"`
	Bytes bytesize.Bytes `json:"bytes"`
}

// sharers is how many processes the library counts on a card (library/share.c).
const sharers = 64

// readTogether reads what the processes of a run held at most, of the cards
// that more than one of them used.
func readTogether(folder string) ([]Together, error) {
	data, err := os.ReadFile(filepath.Join(folder, "cards"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no process had a context
	}
	if err != nil {
		return nil, err
	}
	var worst [MaxGPUs]struct {
		Bytes int64
		By    [sharers]struct{ PID, Bytes int64 }
	}
	if err := binary.Read(bytes.NewReader(data), binary.NativeEndian, &worst); err != nil {
		return nil, err
	}
	var all []Together
	for device, w := range worst {
		t := Together{Device: device, Bytes: bytesize.Bytes(w.Bytes)}
		for _, by := range w.By {
			if by.Bytes > 0 {
				t.Held = append(t.Held, Holding{PID: int(by.PID), Bytes: bytesize.Bytes(by.Bytes)})
			}
		}
		slices.SortFunc(t.Held, func(a, b Holding) int { return cmp.Compare(b.Bytes, a.Bytes) })
		if len(t.Held) > 1 {
			all = append(all, t)
		}
	}
	return all, nil
}
