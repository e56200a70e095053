package job

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestWorkersNameTheirOwnInbox has workers ask the engine to answer where the answer
// would be stored, and for records whose ids they do not know.
func TestWorkersNameTheirOwnInbox(t *testing.T) {
	q := openForWorkers(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	mux := http.NewServeMux()
	mux.Handle("GET "+WorkerPath, q.Handler())
	s := httptest.NewServer(mux)
	defer s.Close()
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	j := b.submit(`{"question": "secret"}`)
	record, err := q.get(ctx, j.ID)
	b.must(err)
	info, anyRecord := streamInfo+"KV_"+recordBucket, "$JS.API.DIRECT.GET.KV_"+recordBucket+".$KV."+recordBucket+".*"
	for name, m := range map[string]*nats.Msg{
		"overwrite a record":         {Subject: info, Reply: "$KV." + recordBucket + "." + j.ID},
		"submit a job":               {Subject: info, Reply: subjectOf("t4", "k")},
		"overwrite it with a report": {Reply: "$KV." + recordBucket + "." + j.ID, Data: []byte(`{}`)},
		"read any record":            {Subject: anyRecord},
		"list all records":           {Subject: info, Data: []byte(`{"subjects_filter": ">"}`)},
	} {
		l, err := Join(ctx, JoinConfig{URL: s.URL, Token: testToken})
		b.must(err)
		ended := make(chan struct{}, 1)
		l.conn.SetDisconnectErrHandler(func(*nats.Conn, error) {
			select {
			case ended <- struct{}{}:
			default:
			}
		})
		if m.Subject == "" {
			m.Subject = reportSubject + l.ID()
		}
		if m.Reply == "" {
			m.Reply = inboxOf(l.ID()) + ".answer"
		}
		answers, err := l.conn.SubscribeSync(inboxOf(l.ID()) + ".answer")
		b.must(err)
		b.must(l.conn.PublishMsg(m))
		select {
		case <-ended:
		case <-ctx.Done():
			t.Errorf("a worker could %s: its connection stays", name)
		}
		if answer, err := answers.NextMsg(50 * time.Millisecond); err == nil {
			t.Errorf("a worker could %s: %s", name, answer.Data)
		}
		l.Close()
	}
	if now, err := q.get(ctx, j.ID); err != nil || now.revision != record.revision {
		t.Errorf("the record has changed: %+v, %v", now, err)
	}
	l, err := Join(ctx, JoinConfig{URL: s.URL, Token: testToken})
	b.must(err)
	defer l.Close()
	b.must(b.take(l).Succeed(ctx, []byte("1"))) // what a worker must be able to do
}

// frame is a frame of a websocket, as a client sends it.
func frame(first byte, said string) []byte {
	out := []byte{first, 0x80}
	switch n := len(said); {
	case n < 126:
		out[1] |= byte(n)
	case n < 1<<16:
		out[1] |= 126
		out = binary.BigEndian.AppendUint16(out, uint16(n))
	default:
		out[1] |= 127
		out = binary.BigEndian.AppendUint64(out, uint64(n))
	}
	mask := []byte{1, 2, 3, 250}
	out = append(out, mask...)
	for i := range len(said) {
		out = append(out, said[i]^mask[i%4])
	}
	return out
}

const (
	binaryFrame = 0x82
	pingFrame   = 0x89
)

// hello is what a worker connects with.
func hello(worker string) string {
	return `CONNECT {"verbose":false,"user":"` + workerName + worker + `"}` + "\r\n"
}

func TestWire(t *testing.T) {
	worker, other := newID(time.Now()).String(), newID(time.Now()).String()
	inbox := inboxOf(worker)
	for name, test := range map[string]struct {
		said string
		ok   bool
	}{
		"nothing":               {"", true},
		"a name":                {hello(worker), true},
		"the name again":        {hello(worker) + hello(worker), true},
		"another name":          {hello(worker) + hello(other), false},
		"no name":               {"CONNECT {}\r\n", false},
		"no JSON":               {"CONNECT hello\r\n", false},
		"pings":                 {hello(worker) + "PING\r\nPONG\r\nping\r\n", true},
		"subscriptions":         {hello(worker) + "SUB a.* 1\r\nUNSUB 1\r\n", true},
		"a message":             {hello(worker) + "PUB a.b 5\r\nhello\r\nPING\r\n", true},
		"an empty message":      {hello(worker) + "PUB a.b 0\r\n\r\nPING\r\n", true},
		"a message in it":       {hello(worker) + "PUB a.b 12\r\nPUB a x 0\r\n1\r\nPING\r\n", true},
		"headers":               {hello(worker) + "HPUB a.b " + inbox + ".1 12 17\r\nNATS/1.0\r\n\r\nhello\r\nPING\r\n", true},
		"an answer":             {hello(worker) + "PUB a.b\t" + inbox + ".1 0\r\n\r\n", true},
		"another's answer":      {hello(worker) + "PUB a.b " + inboxOf(other) + ".1 0\r\n\r\n", false},
		"an answer in a record": {hello(worker) + "pub a.b $KV.memorymark_records.x 0\r\n\r\n", false},
		"it with headers":       {hello(worker) + "HPUB a.b $KV.x 12 12\r\nNATS/1.0\r\n\r\n\r\n", false},
		"an answer to nobody":   {"PUB a.b " + inbox + ".1 0\r\n\r\n", false},
		"a message to many":     {hello(worker) + "PUB a.* 0\r\n\r\n", false},
		"a message to all":      {hello(worker) + "PUB a.> 0\r\n\r\n", false},
		"about a stream":        {hello(worker) + "PUB $JS.API.STREAM.INFO.KV_x " + inbox + ".1 0\r\n\r\n", true},
		"what is in a stream":   {hello(worker) + "PUB $JS.API.STREAM.INFO.KV_x " + inbox + ".1 2\r\n{}\r\n", false},
		"no size":               {hello(worker) + "PUB a.b\r\n", false},
		"no number":             {hello(worker) + "PUB a.b -1\r\n", false},
		"too much":              {hello(worker) + "PUB a b c 1\r\n", false},
		"a server's command":    {hello(worker) + "RS+ a b\r\n", false},
		"an empty line":         {hello(worker) + "\r\n", false},
		"a space before it":     {hello(worker) + " PUB a.b x 0\r\n", false},
		"a long line":           {hello(worker) + "SUB " + strings.Repeat("a", maxLine), false},
	} {
		for _, cut := range []int{1, 7, 1 << 20} { // bytes of a frame, and of what arrives at once
			var sent []byte
			for rest := test.said; rest != ""; rest = rest[min(cut, len(rest)):] {
				sent = append(sent, frame(binaryFrame, rest[:min(cut, len(rest))])...)
				sent = append(sent, frame(pingFrame, "PUB")...)
			}
			var w wire
			var err error
			for ; len(sent) > 0 && err == nil; sent = sent[min(cut, len(sent)):] {
				err = w.follow(sent[:min(cut, len(sent))])
			}
			if (err == nil) != test.ok || err != nil && !errors.Is(err, errWire) {
				t.Errorf("%s, %d bytes at a time: %v", name, cut, err)
			}
		}
	}
	for name, sent := range map[string][]byte{
		"no mask":    {binaryFrame, 4, 'P', 'I', 'N', 'G', '\r', '\n'},
		"compressed": frame(binaryFrame|0x40, "PING\r\n"),
	} {
		if err := new(wire).follow(sent); !errors.Is(err, errWire) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzWire sends anything, in one piece and byte by byte.
func FuzzWire(f *testing.F) {
	worker := newID(time.Now()).String()
	f.Add(frame(binaryFrame, hello(worker)+"PUB a.b "+inboxOf(worker)+".1 5\r\nhello\r\n"))
	f.Add(frame(binaryFrame, "HPUB a.b c 1 2\r\n"))
	f.Add([]byte{binaryFrame, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5})
	f.Fuzz(func(t *testing.T, sent []byte) {
		var whole, pieces wire
		once := whole.follow(sent)
		var each error
		for i := 0; i < len(sent) && each == nil; i++ {
			each = pieces.follow(sent[i : i+1])
		}
		if (once == nil) != (each == nil) {
			t.Errorf("in one piece %v, byte by byte %v", once, each)
		}
	})
}
