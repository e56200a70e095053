// Package dropped answers the page's questions about snapshots that were dropped on it,
// without a server: a file is read where it is, within the limits of the server. Requests
// and answers are those of the API.
package dropped

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"memorymark/internal/recording"
	"memorymark/internal/reply"
	"memorymark/internal/snapshot"
	"memorymark/internal/snapshotstore"
)

// maxUpload is how many bytes a file may have, as the server has it.
const maxUpload = 4 << 30

// File is a file that was dropped. It is read again once its snapshot is no longer in memory.
type File interface {
	io.ReaderAt
	Size() int64
}

// Files are those that were dropped since the page was opened.
type Files struct {
	memory int64 // about how many bytes snapshots may take
	kept   []*kept
	open   []*open // the latest at the end
}

// kept is a file and what it is.
type kept struct {
	Snapshot
	file File
}

// Snapshot is a file and what it holds.
type Snapshot struct {
	snapshotstore.Entry
	Kind     string                  `json:"kind"`
	Protocol int                     `json:"pickle_protocol"`
	Encoding string                  `json:"encoding"`
	Unknown  []string                `json:"unknown_keys,omitempty"`
	Devices  []*recording.DeviceInfo `json:"devices"`
}

// open is a snapshot that is in memory.
type open struct {
	id      string
	file    *snapshot.Snapshot
	devices map[int]*recording.Recording
	cost    int64
}

// New returns no files yet. About that many bytes of snapshots may be in memory; while one is read,
// it may take as much once more.
func New(memory int64) *Files { return &Files{memory: memory} }

const prefix = "/v1/snapshots"

// Ask answers a request; file is its body.
func (f *Files) Ask(method, target string, file File) (answer reply.Reply) {
	defer func() {
		if p := recover(); p != nil {
			answer = reply.Problem(reply.Unprocessable, fmt.Sprintf("this snapshot cannot be answered about: %v", p))
		}
	}()
	at, err := url.Parse(target)
	if err != nil {
		return reply.Problem(reply.NotFound, "there is no such address")
	}
	id, what, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(at.Path, prefix), "/"), "/")
	switch {
	case method == "POST" && id == "":
		snap, err := f.add(file, at.Query().Get("name"))
		return answered(reply.Created, snap, err)
	case method == "GET" && id == "":
		return reply.JSON(reply.OK, f.list())
	case method == "GET" && what == "":
		k, err := f.find(id)
		if err != nil {
			return refused(err)
		}
		return reply.JSON(reply.OK, k.Snapshot)
	case method == "GET" && questions[what] != nil:
		q := &query{given: at.Query(), id: id, files: f}
		value, err := questions[what](q)
		return answered(reply.OK, value, err)
	}
	return reply.NeedsServer()
}

func answered(status int, value any, err error) reply.Reply {
	if err != nil {
		return refused(err)
	}
	return reply.JSON(status, value)
}

// refused is the answer to a question that has none.
func refused(err error) reply.Reply {
	var wrong *wrongQuery
	switch {
	case errors.As(err, &wrong):
		return reply.Problem(reply.Unprocessable, "validation failed", wrong.details...)
	case errors.Is(err, snapshotstore.ErrNotFound):
		return reply.Problem(reply.NotFound, err.Error())
	case errors.Is(err, snapshot.ErrTooLarge):
		return reply.Problem(reply.TooLarge, err.Error())
	}
	return reply.Problem(reply.Unprocessable, err.Error())
}

func (f *Files) find(id string) (*kept, error) {
	for _, k := range f.kept {
		if k.ID == id {
			return k, nil
		}
	}
	return nil, snapshotstore.ErrNotFound
}

func (f *Files) list() any {
	entries, stored := []snapshotstore.Entry{}, int64(0)
	for _, k := range slices.Backward(f.kept) {
		entries, stored = append(entries, k.Entry), stored+k.Stored
	}
	return map[string]any{"snapshots": entries, "stored_bytes": stored, "quota_bytes": 0, "max_upload_bytes": maxUpload}
}

// add reads a file and says what it holds.
func (f *Files) add(file File, name string) (*Snapshot, error) {
	if file.Size() > maxUpload {
		return nil, fmt.Errorf("%w: %d bytes are accepted", snapshot.ErrTooLarge, int64(maxUpload))
	}
	content := &hashed{io.NewSectionReader(file, 0, file.Size()), file.Size(), sha256.New()}
	o, err := f.read(content)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, content); err != nil { // what follows a snapshot is of the file
		return nil, err
	}
	o.id = hex.EncodeToString(content.sum.Sum(nil))
	if k, err := f.find(o.id); err == nil {
		return &k.Snapshot, nil
	}
	k := &kept{file: file, Snapshot: Snapshot{
		Entry: snapshotstore.Entry{
			ID: o.id, Name: name, Origin: snapshotstore.Uploaded, Bytes: file.Size(), Stored: file.Size(), Created: time.Now().UTC().Truncate(time.Second),
		},
		Kind: recording.KindOfFile(o.file), Protocol: o.file.Protocol, Encoding: o.file.Encoding, Unknown: o.file.Unknown,
		Devices: []*recording.DeviceInfo{},
	}}
	for _, t := range recording.Devices(o.file) {
		info, err := o.devices[t.Device].Info()
		if err != nil {
			return nil, unreadable(err)
		}
		k.Devices = append(k.Devices, info)
	}
	f.kept = append(f.kept, k)
	f.hold(o)
	return &k.Snapshot, nil
}

// unreadable is the error of a file that is no snapshot.
func unreadable(err error) error { return fmt.Errorf("not a readable snapshot: %w", err) }

func (f *Files) read(r io.Reader) (*open, error) {
	s, err := snapshot.Read(r, snapshot.Limits{Memory: f.memory, Events: recording.MaxEvents(f.memory)})
	if err != nil {
		return nil, unreadable(err)
	}
	o := &open{file: s, devices: make(map[int]*recording.Recording), cost: s.Memory}
	for _, t := range recording.Devices(s) {
		o.devices[t.Device] = recording.New(t)
		o.cost += recording.Memory(t)
	}
	return o, nil
}

// hold keeps a snapshot in memory, and lets those go that were looked at longest ago.
func (f *Files) hold(o *open) {
	f.open = append(f.open, o)
	total := int64(0)
	for _, each := range f.open {
		total += each.cost
	}
	for total > f.memory && len(f.open) > 1 {
		total -= f.open[0].cost
		f.open = slices.Delete(f.open, 0, 1)
	}
}

// device is what one device of a snapshot did.
func (f *Files) device(id string, device int) (*recording.Recording, error) {
	k, err := f.find(id)
	if err != nil {
		return nil, err
	}
	var o *open
	if i := slices.IndexFunc(f.open, func(o *open) bool { return o.id == id }); i >= 0 {
		o = f.open[i]
		f.open = slices.Delete(f.open, i, i+1)
	} else if o, err = f.read(io.NewSectionReader(k.file, 0, k.file.Size())); err != nil {
		return nil, err
	}
	o.id = id
	f.hold(o)
	t, err := recording.Choose(o.file, device)
	if err != nil {
		return nil, err
	}
	return o.devices[t.Device], nil
}

// hashed sums up what is read.
type hashed struct {
	from io.Reader
	size int64
	sum  hash.Hash
}

func (h *hashed) Size() int64 { return h.size }

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	h.sum.Write(p[:n])
	return n, err
}
