package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"regexp"

	"github.com/minio/highwayhash"
)

// The engine keeps a stream in files of records, N.blk. A record is
//
//	length      4 bytes; the highest bit says that there are headers
//	number      8 bytes; the two highest bits mark what was erased or deleted
//	time        8 bytes
//	            2 bytes: the length of the subject
//	subject
//	headers     after their length in 4 bytes, where there are any
//	data
//	checksum    8 bytes: HighwayHash of number, time, subject, headers and data
//
// (nats-server's server/filestore.go, writeMsgRecordLocked). The engine cuts a
// file off at the first record whose checksum is wrong, and so loses all after
// it. We look before it does, and leave it nothing to cut off.

const (
	recordHeader   = 22
	recordChecksum = 8
	longestRecord  = 32 << 20

	withHeaders = 1 << 31
	erased      = 1 << 63
	tombstone   = 1 << 62
)

// stored is a record of a block that is as it was written.
type stored struct {
	at, length int
	number     uint64 // as it is written, with its marks
	subject    string
	headers    []byte // nil: none
	data       []byte
}

// gap is a part of a block that holds no record as it was written.
type gap struct {
	at, length int
	before     uint64 // the number of the record before it, 0 at the beginning
	last       bool   // nothing follows, as after a crash
	stored            // what can still be read of it, if it is one record
	readable   bool
}

// block is a file of records.
type block struct {
	bytes    []byte
	sum      hash.Hash
	subjects *regexp.Regexp // of its stream; nil: any
}

// subjects are those that a stream has. The checksum of a record leaves out the
// lengths of its subject and its headers: a flipped bit there makes others, which
// only their look gives away.
var subjects = map[string]*regexp.Regexp{
	"KV_" + recordBucket: regexp.MustCompile(`^\$KV\.` + recordBucket + `\.[0-9a-z]{26}$`),
	"KV_" + resultBucket: regexp.MustCompile(`^\$KV\.` + resultBucket + `\.[0-9a-z]{26}\.[0-9]+$`),
	eventStream:          regexp.MustCompile(`^` + regexp.QuoteMeta(eventSubject) + `[0-9a-z]{26}$`),
	queueStream:          regexp.MustCompile(`^` + regexp.QuoteMeta(queueSubject) + `[^.]+\.[0-9a-f]{32}$`),
	proofStream:          regexp.MustCompile(`^` + regexp.QuoteMeta(proofSubject) + `$`),
}

// takes reports whether a record's subject is one of the stream's, and its headers
// are whole. What is erased or deleted may have none.
func (b *block) takes(r stored) bool {
	if r.headers != nil && (!bytes.HasPrefix(r.headers, []byte("NATS/1.0")) || !bytes.HasSuffix(r.headers, []byte("\r\n\r\n"))) {
		return false
	}
	return b.subjects == nil || r.number&(erased|tombstone) != 0 || b.subjects.MatchString(r.subject)
}

// newBlock reads a block. Its checksums depend on its stream and its number, so
// that none passes for another.
func newBlock(stream string, number int, data []byte) (*block, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, number))
	sum, err := highwayhash.NewDigest64(key[:])
	return &block{data, sum, subjects[stream]}, err
}

// frame is a record's parts, which fit each other; its checksum may be wrong.
func (b *block) frame(at int) (r stored, hashed [][]byte, ok bool) {
	rest := b.bytes[at:]
	if len(rest) < recordHeader+recordChecksum {
		return r, nil, false
	}
	first := binary.LittleEndian.Uint32(rest)
	length, subject := int(first&^withHeaders), int(binary.LittleEndian.Uint16(rest[20:]))
	begin := recordHeader + subject
	if first&withHeaders != 0 {
		begin += 4
	}
	if length > len(rest) || length > longestRecord || begin+recordChecksum > length {
		return r, nil, false
	}
	body := rest[begin : length-recordChecksum]
	r = stored{at: at, length: length, number: binary.LittleEndian.Uint64(rest[4:]), subject: string(rest[recordHeader : recordHeader+subject]), data: body}
	if first&withHeaders != 0 {
		headers := int(binary.LittleEndian.Uint32(rest[begin-4:]))
		if headers > len(body) {
			return r, nil, false
		}
		r.headers, r.data = body[:headers], body[headers:]
	}
	return r, [][]byte{rest[4:20], rest[recordHeader : recordHeader+subject], body}, true
}

// record returns the record at a place if it is as it was written.
func (b *block) record(at int) (stored, bool) {
	r, hashed, ok := b.frame(at)
	if !ok {
		return r, false
	}
	b.sum.Reset()
	for _, part := range hashed {
		b.sum.Write(part)
	}
	end := at + r.length
	return r, bytes.Equal(b.sum.Sum(nil), b.bytes[end-recordChecksum:end]) && b.takes(r)
}

// each calls a function for every record, and another for every gap. The second
// may mend the block, and says whether to look at the place again.
func (b *block) each(record func(stored), broken func(gap) (again bool)) {
	var before uint64
	for at := 0; at < len(b.bytes); {
		r, ok := b.record(at)
		if ok {
			before = max(before, r.number&^(erased|tombstone))
			record(r)
			at += r.length
			continue
		}
		g := b.gap(at)
		g.before = before
		if !broken(g) {
			at += g.length
		}
	}
}

// gap finds out how far something reaches that is no record.
func (b *block) gap(at int) gap {
	if r, _, ok := b.frame(at); ok {
		end := at + r.length
		if _, follows := b.record(min(end, len(b.bytes))); follows || end == len(b.bytes) {
			return gap{at: at, length: r.length, last: end == len(b.bytes), stored: r, readable: true}
		}
	}
	for next := at + 1; next < len(b.bytes); next++ {
		if _, ok := b.record(next); ok {
			return gap{at: at, length: next - at}
		}
	}
	return gap{at: at, length: len(b.bytes) - at, last: true}
}

// longestCorrected bounds the search for a flipped bit, which takes as long as
// the square of a record's length: a second or two.
const longestCorrected = 32 << 10

// correct finds the one bit that was flipped in a gap and flips it back. A
// checksum of 64 bits leaves no doubt that it is the one.
func (b *block) correct(g gap) bool {
	try := func(from, to int) bool {
		return flipBack(b.bytes[from:to], func() bool {
			r, ok := b.record(g.at)
			return ok && r.length <= g.length
		})
	}
	header := min(g.at+recordHeader, len(b.bytes))
	if try(g.at, header) {
		return true
	}
	// With the lengths as they are, or the record would not end where it does.
	return g.readable && g.length <= longestCorrected && try(header, g.at+g.length)
}

// replace puts another record of the same number and length in a gap's place.
// It must be readable, and the data no longer than there is room.
func (b *block) replace(g gap, data []byte) {
	record := b.bytes[g.at : g.at+g.length]
	binary.LittleEndian.PutUint32(record, uint32(g.length))
	body := record[recordHeader+len(g.subject) : g.length-recordChecksum]
	for i := range body {
		body[i] = ' ' // which JSON does not mind
	}
	copy(body, data)
	b.seal(g)
}

// room is how long the data of a record in a gap's place can be.
func (g gap) room() int { return g.length - recordHeader - recordChecksum - len(g.subject) }

// erase puts a record in a gap's place that says that there is none. A gap may
// be shorter than any record; then nothing can be done.
func (b *block) erase(g gap) bool {
	if g.length < recordHeader+recordChecksum || g.length > longestRecord {
		return false
	}
	record := b.bytes[g.at : g.at+g.length]
	clear(record)
	binary.LittleEndian.PutUint32(record, uint32(g.length))
	binary.LittleEndian.PutUint64(record[4:], (g.before+1)|erased)
	b.seal(g)
	return true
}

// seal writes the checksum of a record without headers.
func (b *block) seal(g gap) {
	record := b.bytes[g.at : g.at+g.length]
	b.sum.Reset()
	b.sum.Write(record[4:20])
	b.sum.Write(record[recordHeader : g.length-recordChecksum])
	copy(record[g.length-recordChecksum:], b.sum.Sum(nil))
}
