package job

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// wire follows what a worker sends to the engine: frames of a websocket (RFC 6455) with
// the engine's protocol in them. The engine checks which subjects a worker publishes
// to (WorkerRights), and no more. It answers to any subject that the worker names, even
// to that of a record, where the answer would be stored. It takes a wildcard in the
// name of a record for whatever record there is. And who asks about a stream may ask
// for the names of all records. So these are refused here.
type wire struct {
	head    []byte  // of a frame, as far as it has come
	left    uint64  // bytes of a frame that are to come
	mask    [4]byte // of the frame
	at      int     // which byte of the mask is next
	control bool    // the frame is no part of what is said

	line  []byte // of a command, as far as it has come
	skip  uint64 // bytes of a message that are to come
	inbox string // what replies begin with; "" before the worker has said its name
}

// errWire says that a worker does what no worker does.
var errWire = errors.New("this is not what a worker says")

// streamInfo begins the subjects on which the engine is asked about a stream.
const streamInfo = "$JS.API.STREAM.INFO."

// maxLine is how long a command may be; the longest is what a worker connects with.
const maxLine = 64 << 10

// follow reports whether the next bytes are a worker's to send.
func (w *wire) follow(data []byte) error {
	for len(data) > 0 {
		if w.left == 0 {
			w.head = append(w.head, data[0])
			data = data[1:]
			if err := w.begin(); err != nil {
				return err
			}
			continue
		}
		n := int(min(w.left, uint64(len(data))))
		w.left -= uint64(n)
		if !w.control {
			said := bytes.Clone(data[:n])
			for i := range said {
				said[i] ^= w.mask[(w.at+i)%len(w.mask)]
			}
			if err := w.hear(said); err != nil {
				return err
			}
		}
		w.at += n
		data = data[n:]
	}
	return nil
}

// begin begins a frame once its head is there.
func (w *wire) begin() error {
	const masked, reserved, controls = 0x80, 0x70, 0x08
	if len(w.head) < 2 {
		return nil
	}
	length, more := uint64(w.head[1]&^masked), 0
	switch length {
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if len(w.head) < 2+more+len(w.mask) {
		return nil
	}
	if w.head[1]&masked == 0 || w.head[0]&reserved != 0 {
		return fmt.Errorf("%w: a frame without a mask, or a compressed one", errWire)
	}
	switch more {
	case 2:
		length = uint64(binary.BigEndian.Uint16(w.head[2:]))
	case 8:
		length = binary.BigEndian.Uint64(w.head[2:])
	}
	w.left, w.at, w.control = length, 0, w.head[0]&controls != 0
	copy(w.mask[:], w.head[2+more:])
	w.head = w.head[:0]
	return nil
}

// hear goes through commands and the messages that come with them.
func (w *wire) hear(said []byte) error {
	for len(said) > 0 {
		if w.skip > 0 {
			n := min(w.skip, uint64(len(said)))
			w.skip -= n
			said = said[n:]
			continue
		}
		rest, after, ended := bytes.Cut(said, []byte("\n"))
		if w.line = append(w.line, rest...); len(w.line) > maxLine {
			return fmt.Errorf("%w: a command of more than %d bytes", errWire, maxLine)
		}
		if ended {
			if err := w.command(string(w.line)); err != nil {
				return err
			}
			w.line = w.line[:0]
		}
		said = after
	}
	return nil
}

// command looks at one line.
func (w *wire) command(line string) error {
	fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' })
	if len(fields) == 0 || !strings.HasPrefix(line, fields[0]) {
		return fmt.Errorf("%w: a line without a command", errWire)
	}
	switch name, args := strings.ToUpper(fields[0]), fields[1:]; name {
	case "PING", "PONG", "SUB", "UNSUB":
		return nil
	case "CONNECT":
		return w.connect(line[len(name):])
	case "PUB":
		return w.publish(args, 1)
	case "HPUB": // it also says how long the headers are
		return w.publish(args, 2)
	default:
		return fmt.Errorf("%w: %.20q", errWire, name)
	}
}

// connect hears the worker's name, once.
func (w *wire) connect(options string) error {
	var who struct {
		User string `json:"user"`
	}
	if err := json.Unmarshal([]byte(options), &who); err != nil {
		return fmt.Errorf("%w: %w", errWire, err)
	}
	worker, err := workerID(who.User)
	if err != nil {
		return fmt.Errorf("%w: %w", errWire, err)
	}
	inbox := inboxOf(worker) + "."
	if w.inbox != "" && w.inbox != inbox {
		return fmt.Errorf("%w: another name", errWire)
	}
	w.inbox = inbox
	return nil
}

// publish looks at where a message goes and where its answer is to go. Sizes are the
// last of the arguments.
func (w *wire) publish(args []string, sizes int) error {
	if len(args) < 1+sizes || len(args) > 2+sizes {
		return fmt.Errorf("%w: a message with %d arguments", errWire, len(args))
	}
	size, err := strconv.ParseUint(args[len(args)-1], 10, 31)
	if err != nil {
		return fmt.Errorf("%w: %w", errWire, err)
	}
	w.skip = size + uint64(len("\r\n"))
	switch subject := args[0]; {
	case strings.ContainsAny(subject, "*>"):
		return fmt.Errorf("%w: a message to many", errWire)
	case size > 0 && strings.HasPrefix(subject, streamInfo):
		return fmt.Errorf("%w: a question about what is in a stream", errWire)
	}
	if len(args) == 2+sizes && (w.inbox == "" || !strings.HasPrefix(args[1], w.inbox)) {
		return fmt.Errorf("%w: an answer to %.60q", errWire, args[1])
	}
	return nil
}
