package job

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// id is a job's id: milliseconds, so that ids sort as jobs were submitted, then
// 80 random bits. It is written in 26 characters that sort as the bytes do.
type id [16]byte

// letters are Crockford's: none is mistaken for another.
var letters = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

func newID(now time.Time) id {
	var out id
	binary.BigEndian.PutUint64(out[:8], uint64(now.UnixMilli())<<16)
	rand.Read(out[6:]) //nolint:errcheck // it never fails, see its documentation
	return out
}

// workerMark is how many bytes of a worker's id bind it to its token.
const workerMark = 6

// newWorkerID returns an id that only this token can use: no worker passes for
// one with another token.
func newWorkerID(now time.Time, token string) id {
	out := newID(now)
	copy(out[len(out)-workerMark:], markOf(out, token))
	return out
}

func markOf(i id, token string) []byte {
	h := hmac.New(sha256.New, []byte(token))
	h.Write(i[:len(i)-workerMark])
	return h.Sum(nil)[:workerMark]
}

// ownWorkerID reports whether an id was made for a token.
func ownWorkerID(worker, token string) bool {
	i, ok := parseID(worker)
	return ok && hmac.Equal(i[len(i)-workerMark:], markOf(i, token))
}

func (i id) String() string { return letters.EncodeToString(i[:]) }

// parseID reads an id and says whether it is one. Ids come from strangers and
// become parts of subjects, so nothing else passes.
func parseID(s string) (id, bool) {
	var out id
	if len(s) != letters.EncodedLen(len(out)) {
		return out, false
	}
	_, err := letters.Decode(out[:], []byte(s))
	return out, err == nil && out.String() == s
}

// keyLength is how long a key is.
const keyLength = 32

// keyOf makes a key that can be part of a subject.
func keyOf(r *Request) string {
	h := sha256.New()
	h.Write([]byte(r.Card))
	h.Write([]byte{0})
	if r.Key != "" {
		h.Write([]byte(r.Key))
	} else {
		h.Write([]byte{0})
		h.Write(r.Payload)
	}
	return hex.EncodeToString(h.Sum(nil))[:keyLength]
}
