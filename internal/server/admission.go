package server

import (
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"memorymark/internal/admission"
)

// policy says how requests of a route are treated on their way to it.
type policy struct {
	access access
	slots  slots
	body   int64         // how many bytes of it are received first; 0 if the handler does that
	within time.Duration // how long they may take to arrive
	opaque bool          // long parts of the body are not parsed
	packed bool          // the answer is compressed
}

// access says whose token opens a route.
type access int

const (
	users access = iota
	workers
	usersAndWorkers
	anyone // no token is needed
)

// slots says which requests share slots.
type slots int

const (
	uncounted  slots = iota // what lasts and waits more than it works, and what others ask to see that the server is well
	ordinary                // what is worked on
	uploads                 // what takes as long as its sender
	fromWorker              // what mostly waits: a worker has one for each card, and another
	slotKinds
)

// uploadPattern is that of a route that is told apart elsewhere too.
const uploadPattern = "POST /v1/snapshots"

// policies are those of routes that are not like most. Routes that need no token tell
// nothing that is not in MemoryMark's source, but for the name of this machine's card.
// The page, whose pattern is empty, is among them; what it shows comes from routes that
// are not.
var policies = map[string]policy{
	"":                        usual(policy{access: anyone}),
	"GET /{$}":                usual(policy{access: anyone, packed: true}),
	"GET /docs":               usual(policy{access: anyone}),
	"GET /openapi.json":       usual(policy{access: anyone, packed: true}),
	"POST /v1/session":        usual(policy{access: anyone}),
	"DELETE /v1/session":      usual(policy{access: anyone}),
	"GET /health":             {access: anyone},
	"GET /ready":              {access: anyone},
	"POST /v1/plans/events":   usual(policy{}), // each event goes out at once
	"POST /analyze":           {body: maxSmallBody, within: bodyTime},
	uploadPattern:             {access: usersAndWorkers, slots: uploads},
	"DELETE /v1/workers/{id}": {access: workers, slots: fromWorker},

	"POST /v1/workers":                         ofWorker(maxAnnouncement, bodyTime),
	"POST /v1/workers/{id}/heartbeat":          ofWorker(maxAnnouncement, bodyTime),
	"POST /v1/workers/{id}/lease":              ofWorker(maxAnnouncement, bodyTime),
	"POST /v1/workers/{id}/jobs/{job}/release": ofWorker(maxAnnouncement, bodyTime),
	"POST /v1/workers/{id}/jobs/{job}/events":  ofWorker(maxEventsBody, bodyTime),
	"POST /v1/workers/{id}/jobs/{job}/result":  ofWorker(maxResultBody, resultTime),
	"GET /v1/analyses/{id}/events":             {},
}

// usual is a policy with what most have.
func usual(p policy) policy {
	p.slots, p.body, p.within = ordinary, maxSmallBody, bodyTime
	return p
}

func ofWorker(body int64, within time.Duration) policy {
	return policy{access: workers, slots: fromWorker, body: body, within: within, opaque: true}
}

func policyOf(pattern string) policy {
	if p, ok := policies[pattern]; ok {
		return p
	}
	return usual(policy{packed: true}) // JSON shrinks to a fifth
}

// newGates returns what admits requests to their slots. No client has more than half of
// any kind, so that one that sends slowly cannot keep all others out.
func newGates() (g [slotKinds]*admission.Gate) {
	g[ordinary] = admission.New(admission.Capacity{Slots: 1024, PerClient: 512, Queue: 512})
	g[uploads] = admission.New(admission.Capacity{Slots: 64, PerClient: 32, Queue: 128})
	g[fromWorker] = admission.New(admission.Capacity{Slots: 8192, PerClient: 4096, Queue: 1024})
	return g
}

// newParsing returns what admits bodies to be parsed, by their bytes. That takes up to
// a hundred times their size in memory and up to half a second for each megabyte, so it is
// a megabyte for each core.
func newParsing() *admission.Gate {
	return admission.New(admission.Capacity{Slots: int64(runtime.GOMAXPROCS(0)) * maxSmallBody, Queue: admission.Unbounded})
}

// admitted waits until a request has slots: one, and more if its body is long. They are
// given back when its answer begins to be sent.
func (s *Server) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if c.policy.slots == uncounted {
			next.ServeHTTP(w, r)
			return
		}
		length := min(r.ContentLength, c.policy.body)
		if length < 0 { // it is not known
			length = c.policy.body
		}
		release, err := s.gates[c.policy.slots].Acquire(r.Context(), c.client(), 1+length/longBody)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		defer release()
		c.release = release
		next.ServeHTTP(w, r)
	})
}

// refuse answers for a request that was not admitted.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	setRetryAfter(w.Header(), err)
	s.fail(w, r, statusOf(err), err.Error())
}

// setRetryAfter says when it is worth asking again.
func setRetryAfter(h http.Header, err error) {
	seconds := 1
	if busy := new(admission.BusyError); errors.As(err, &busy) {
		seconds = int(busy.RetryAfter.Seconds())
	}
	h.Set("Retry-After", strconv.Itoa(seconds))
}
