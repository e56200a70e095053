package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"memorymark/internal/testmachine"
)

const head = "\x80\x04"

// str is a short string in a pickle.
func str(s string) string { return "\x8c" + string(rune(len(s))) + s }

// TestReadRefuses has a few bytes for every way in which a file can be wrong
// or hostile, and the error each gets.
func TestReadRefuses(t *testing.T) {
	repeat := strings.Repeat
	event := str("action") + str("alloc")
	for _, test := range []struct{ name, file, want string }{
		{"empty", "", "byte 0: the file is empty; a snapshot is the pickle that torch.cuda.memory._dump_snapshot writes"},
		{"checkpoint", "PK\x03\x04\x00\x00", "byte 0: this is a zip archive, as torch.save writes for checkpoints"},
		{"json", " {\"segments\": []}", "byte 0: this looks like JSON"},
		{"html", "<!DOCTYPE html>", "byte 0: this looks like HTML"},
		{"text", "hello world", "byte 0: not a pickle of protocol 2 or later"},
		{"protocol 0", "(lp0\n.", "byte 0: not a pickle of protocol 2 or later"},
		{"protocol 6", "\x80\x06N.", "byte 1: pickle protocol 6"},
		{"gzip magic alone", "\x1f\x8b", "gzip: "},
		{"zstd magic alone", "\x28\xb5\x2f\xfd", "byte 0: "},
		{"xz magic alone", "\xfd7zXZ\x00", "xz: "},

		{"GLOBAL", head + "cos\nsystem\n(S'ls'\ntR.", "byte 2: opcode GLOBAL is not allowed: a snapshot must not contain code"},
		{"STACK_GLOBAL", head + str("os") + str("system") + "\x93.", "byte 14: opcode STACK_GLOBAL is not allowed"},
		{"REDUCE", head + ")R.", "byte 3: opcode REDUCE is not allowed"},
		{"BUILD", head + "}}b.", "byte 4: opcode BUILD is not allowed"},
		{"INST", head + "(ios\nsystem\n.", "byte 3: opcode INST is not allowed"},
		{"NEWOBJ", head + "))\x81.", "byte 4: opcode NEWOBJ is not allowed"},
		{"persistent id", head + "NQ.", "byte 3: opcode BINPERSID is not allowed"},
		{"extension", head + "\x82\x01.", "byte 2: opcode EXT1 is not allowed"},
		{"DUP", head + "]2.", "byte 3: opcode DUP is not allowed: snapshots do not use it"},
		{"bytes", head + "C\x01a.", "byte 2: opcode SHORT_BINBYTES is not allowed"},
		{"no opcode", head + "\xff.", "byte 2: 0xff is not a pickle opcode"},

		{"BYTEARRAY8 of 1 TB", head + "\x96\x00\x00\x00\x00\x00\x01\x00\x00.", "byte 2: opcode BYTEARRAY8 is not allowed"},
		{"BINBYTES8 of 1 EB", head + "\x8e\x00\x00\x00\x00\x00\x00\x00\x10.", "byte 2: opcode BINBYTES8 is not allowed"},
		{"FRAME of 1 TB", head + "\x95\x00\x00\x00\x00\x00\x01\x00\x00N.", "byte 13: the file holds None"},
		{"string of 4 GB", head + "X\xff\xff\xff\xffabc.", "byte 7: a string of 4294967295 bytes: the limit is 1048576"},
		{"string of 1 MiB that is not there", head + "X\x00\x00\x10\x00abc.", "byte 11: the file ends in the middle"},
		{"LONG1 of 10 bytes", head + "\x8a\x0a" + repeat("\x01", 10) + ".", "byte 4: LONG1 of 10 bytes"},
		{"LONG1 beyond 64 bits", head + "\x8a\x09" + repeat("\xff", 8) + "\x01.", "the number does not fit in 64 bits"},
		{"many MARKs", head + repeat("(", 1000), "byte 67: more than 64 nested MARKs"},
		{"many MEMOIZEs", head + "]" + repeat("\x94", 1000), "byte 9: memo slot 5 in the first 9 bytes"},
		{"memo slot 4 billion", head + "]r\xff\xff\xff\xff.", "memo slot 4294967295 in the first 8 bytes"},
		{"memo slot twice", head + "]q\x00q\x00.", "memo slot 0 is written twice"},
		{"memo slot empty", head + "h\x00.", "byte 4: memo slot 0 is empty"},
		{"memo slot left out", head + "]q\x01h\x00.", "memo slot 0 is empty"},

		{"STOP at once", head + ".", "byte 3: STOP with 0 objects"},
		{"STOP too late", head + "NN.", "byte 5: STOP with 2 objects"},
		{"data after STOP", head + "}.x", "byte 4: there is more after the end of the pickle"},
		{"no STOP", head + "}", "byte 3: the file ends in the middle"},
		{"cut in an argument", head + "}J\x00", "byte 5: the file ends in the middle"},
		{"APPENDS without MARK", head + "]e.", "the end of a batch without its MARK"},
		{"APPEND to nothing", head + "Na.", "the stack is too short"},
		{"APPEND below a MARK", head + "](Na.", "the stack is too short"},
		{"APPENDS to a dict", head + "}(Ne.", "items appended to a dict"},
		{"SETITEMS on a list", head + "](" + event + "u.", "items set on a list"},
		{"SETITEM of nothing", head + "}s.", "the stack is too short"},
		{"MEMOIZE of nothing", head + "\x94.", "nothing to memoize"},
		{"TUPLE2 of one", head + "N\x86.", "the stack is too short"},
		{"key without value", head + "}(" + str("action") + "u.", "a key without a value"},
		{"key that is a number", head + "}(K\x01K\x02u.", "a dict key is an integer and not a string"},

		{"a list in itself", head + "]\x94h\x00a.", "a list is changed after it was referred to"},
		{"a dict in itself", head + "}\x94(" + str("frames") + "h\x00u.", "a dict is changed after it was referred to"},
		{"changed after use", head + "]\x94h\x00Na.", "a list is changed after it was referred to"},

		{"a string", head + str("segments") + ".", "the file holds a string and not a snapshot"},
		{"an event", head + "}(" + event + "u.", "the file holds an event and not a snapshot"},
		{"another dict", head + "}" + str("model") + "Ns.", "without segments and device_traces: not a snapshot"},
		{"segments not a list", head + "}" + str("segments") + "Ns.", "None where a list is expected"},
		{"numbers for segments", head + "}" + str("segments") + "]K\x01as.", "an integer in a list where a segment is expected"},
		{"wrong type", head + "}(" + event + str("size") + str("big") + "u.", "event: size is a string and not a 64-bit integer"},
		{"negative size", head + "}(" + event + str("size") + "J\xff\xff\xff\xffu.", "event: size is negative: -1"},
		{"state not known", head + "}(" + str("state") + str("gone") + "u.", `block: state is "gone", which is not known`},
		{"device 300", head + "}(" + str("total_size") + "K\x01" + str("device") + "M\x2c\x01u.", "segment: device 300: the limit is 128"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(test.file), iotest.OneByteReader(strings.NewReader(test.file))} {
				_, err := Read(r, Limits{})
				if err == nil {
					t.Fatal("accepted")
				}
				if !strings.HasPrefix(err.Error(), "read snapshot: ") || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got  %v\nwant %s", err, test.want)
				}
			}
		})
	}
}

// TestReadTruncated cuts a file at every byte.
func TestReadTruncated(t *testing.T) {
	file := testmachine.ReadFile(t, "testdata/shapes/torch214.p4.pickle")
	for n := range file {
		if _, err := Read(bytes.NewReader(file[:n]), Limits{}); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(file))
		} else if n > 2 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
}

// TestReadReaderErrors checks that the reader's own error comes through.
func TestReadReaderErrors(t *testing.T) {
	broken := errors.New("broken cable")
	file := head + "}" + strings.Repeat("N", 100)
	_, err := Read(io.MultiReader(strings.NewReader(file), iotest.ErrReader(broken)), Limits{})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "byte 103") {
		t.Errorf("got %v", err)
	}
}

// TestReadBounded feeds endless repetitions and checks that they stop at the
// limit, whatever is repeated.
func TestReadBounded(t *testing.T) {
	event := "}(" + str("action") + str("alloc") + "u"
	for _, test := range []struct{ name, before, again, want string }{
		{"values", "(", "N", "bytes of memory"},
		{"list items", "]", "Na", "bytes of memory"},
		{"lists", "(", "](NNe", "bytes of memory"},
		{"memo", "(", "]\x94", "bytes of memory"},
		{"dict items", "}", str("key") + "Ns", "bytes of memory"},
		{"events", "(", event, "bytes of memory"},
		{"repeated FRAMEs", "", "\x95\x00\x00\x00\x00\x00\x00\x00\x00", "larger than the limit"},
	} {
		t.Run(test.name, func(t *testing.T) {
			limits := Limits{Bytes: 64 << 20, Memory: 16 << 20}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Read(io.MultiReader(strings.NewReader(head+test.before), &endless{text: test.again}), limits)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			// A slice that grows has been allocated several times over.
			if got := int64(after.TotalAlloc - before.TotalAlloc); got > 8*limits.Memory {
				t.Errorf("%d bytes were allocated", got)
			}
		})
	}
}

// TestReadSettingsOnce checks that the devices of a file share its settings,
// which used to be copied for each.
func TestReadSettingsOnce(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(head + "}(" + str("device_traces") + "](" + strings.Repeat("]", maxDevices) + "e" + str("allocator_settings") + "}(")
	for i := range 10_000 {
		fmt.Fprintf(&b, "%sK\x01", str(fmt.Sprintf("setting%05d", i)))
	}
	b.WriteString("uu.")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := Read(&b, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 || len(s.Devices[maxDevices-1].Settings.Other) != 10_000 {
		t.Errorf("%d bytes were allocated for %d settings", got, len(s.Devices[maxDevices-1].Settings.Other))
	}
}

// TestReadManyStreams has as many streams as a file may have, on two devices.
// Naming them takes time that grows with their number, not with its square.
func TestReadManyStreams(t *testing.T) {
	_, eighth := readStreams(t, maxStreams/8)
	s, took := readStreams(t, maxStreams)
	d := s.Devices[1]
	if got := d.Streams[d.Events[maxStreams-1].Stream]; len(d.Streams) != maxStreams+1 || got != maxStreams {
		t.Errorf("%d streams, the last event is on %d", len(d.Streams), got)
	}
	// Linear is 8 times as long, quadratic 64 times; the rest is slack for garbage collection.
	if took > 24*eighth+time.Second {
		t.Errorf("it took %v, an eighth of it %v", took, eighth)
	}
}

// readStreams reads a file with an event on each of n streams, twice, and
// returns the processor time.
func readStreams(t *testing.T, n int) (*Snapshot, time.Duration) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(head + "}(" + str("device_traces") + "](")
	for range 2 {
		b.WriteString("](")
		for i := range n {
			b.WriteString("}(" + str("action") + str("alloc") + str("stream") + "J")
			binary.Write(&b, binary.LittleEndian, uint32(i+1))
			b.WriteString("u")
		}
		b.WriteString("e")
	}
	b.WriteString("eu.")
	start := testmachine.ProcessorTime(t)
	s, err := Read(&b, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s, testmachine.ProcessorTime(t) - start
}

func TestReadEventLimit(t *testing.T) {
	f, err := os.Open("testdata/shapes/torch211.p4.pickle")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = Read(f, Limits{Events: 5})
	if err == nil || !strings.Contains(err.Error(), "more than 5 events") {
		t.Errorf("got %v", err)
	}
}

// endless repeats a text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

// TestReadSharedLists refers to long lists many times, which must not cost
// their length each time.
func TestReadSharedLists(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("\x80\x02}(" + str("device_traces") + "](](")
	event := func(key string) {
		b.WriteString("}(" + str("action") + str("alloc") + str(key))
	}
	long := func(key, item string, slot uint32) {
		event(key)
		b.WriteString("]r")
		binary.Write(&b, binary.LittleEndian, slot)
		b.WriteString("(" + strings.Repeat(item, 50_000) + "eu")
		for range 50_000 {
			event(key)
			b.WriteString("h" + string(rune(slot)) + "u")
		}
	}
	long("forward_frames", str("line"), 0)
	long("frames", "}"+str("filename")+str("x")+"s", 1)
	b.WriteString("eeu.")
	s, err := Read(&b, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d := s.Devices[0]
	last := d.Events[len(d.Events)-1]
	if len(d.Events) != 100_002 || len(d.Stacks.IDs(last.Stack)) != 50_000 || len(d.Notes) > 4 {
		t.Errorf("%d events, %d notes", len(d.Events), len(d.Notes))
	}
}
