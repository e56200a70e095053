package dropped

import (
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/bytesize"
	"memorymark/internal/recording"
	"memorymark/internal/reply"
	"memorymark/internal/timeline"
	"memorymark/internal/trace"
)

// questions are what can be asked about a snapshot, by the rest of the path.
var questions = map[string]func(*query) (any, error){
	"timeline": drawn,
	"top": func(q *query) (any, error) {
		at, by, n := q.text("at", "peak"), q.text("by", "line"), q.rows()
		return ofDevice(q, func(r *recording.Recording) (*recording.Top, error) {
			top, err := r.Top(at, by, n)
			if err != nil {
				return nil, err
			}
			top.File = q.id
			return top, nil
		})
	},
	"flame": func(q *query) (any, error) {
		at := q.text("at", "peak")
		return ofDevice(q, func(r *recording.Recording) (*recording.Flame, error) { return r.Flame(at) })
	},
	"segments": func(q *query) (any, error) {
		at := q.text("at", "end")
		return ofDevice(q, func(r *recording.Recording) (*recording.Segments, error) { return r.Segments(at) })
	},
	"stretch": func(q *query) (any, error) {
		from, to, n := q.number("from", 0, 0, math.MaxInt32), q.number("to", 0, 0, math.MaxInt32), q.rows()
		return ofDevice(q, func(r *recording.Recording) (*recording.Stretch, error) { return r.Stretch(from, to, n) })
	},
	"events":  events,
	"replay":  replay,
	"compare": compare,
	"diff":    diff,
}

// query reads the parameters of a question, with the API's defaults and bounds.
type query struct {
	id    string
	given url.Values
	files *Files
	wrong wrongQuery
}

// wrongQuery is what is wrong with parameters.
type wrongQuery struct{ details []reply.Detail }

func (e *wrongQuery) Error() string { return "validation failed" }

func (q *query) complain(key, text string) {
	q.wrong.details = append(q.wrong.details, reply.Detail{Message: text, Location: "query." + key})
}

// err is what is wrong so far.
func (q *query) err() error {
	if len(q.wrong.details) > 0 {
		return &q.wrong
	}
	return nil
}

func (q *query) text(key, absent string) string {
	if q.given.Has(key) {
		return q.given.Get(key)
	}
	return absent
}

func (q *query) number(key string, absent, least, most int) int {
	if !q.given.Has(key) {
		return absent
	}
	n, err := strconv.Atoi(q.given.Get(key))
	if err != nil || n < least || n > most {
		q.complain(key, "expected a number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
	return n
}

// rows is how many groups or differences are wanted.
func (q *query) rows() int { return q.number("n", 20, 1, 1000) }

// optional is a parameter that may be absent.
func optional[T any](q *query, key string, parse func(string) (T, error)) *T {
	if !q.given.Has(key) {
		return nil
	}
	value, err := parse(q.given.Get(key))
	if err != nil {
		q.complain(key, "expected a number")
	}
	return &value
}

func parseInt(text string) (int64, error)     { return strconv.ParseInt(text, 10, 64) }
func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func parseBytes(text string) (bytesize.Bytes, error) {
	n, err := parseInt(text)
	return bytesize.Bytes(n), err
}

// ofDevice answers with what a function says of one device.
func ofDevice[T any](q *query, do func(*recording.Recording) (T, error)) (any, error) {
	device := q.number("device", recording.BusiestDevice, recording.BusiestDevice, math.MaxInt32)
	if err := q.err(); err != nil {
		return nil, err
	}
	r, err := q.files.device(q.id, device)
	if err != nil {
		return nil, err
	}
	return do(r)
}

// maxSteps is how many boxes a timeline has at most, as the server has it.
const maxSteps = 1_000_000

func drawn(q *query) (any, error) {
	opts := timeline.Options{
		From: q.number("from", 0, 0, math.MaxInt32), To: q.number("to", 0, 0, math.MaxInt32),
		Columns: q.number("columns", 1600, 1, 20_000), Detail: q.number("detail", 4000, 1, 100_000),
		Steps: maxSteps, ByStack: q.text("by_stack", "") == "true",
	}
	return ofDevice(q, func(r *recording.Recording) (*timeline.Wire, error) {
		if opts.From > len(r.Events) || opts.To > len(r.Events) || opts.To > 0 && opts.From > opts.To {
			q.complain("from", "there are "+strconv.Itoa(len(r.Events))+" events")
			return nil, q.err()
		}
		tl, err := r.Timeline(opts)
		if err != nil {
			return nil, err
		}
		return tl.Wire(), nil
	})
}

func events(q *query) (any, error) {
	search := recording.Search{From: q.number("from", 0, 0, math.MaxInt32), Frame: q.text("frame", "")}
	for key, into := range map[string]*int64{"min_bytes": &search.MinBytes, "max_bytes": &search.MaxBytes} {
		if n := optional(q, key, parseInt); n != nil {
			*into = *n
		}
	}
	if address := optional(q, "address", func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }); address != nil {
		search.Address = *address
	}
	if n := q.number("allocation", -1, -1, math.MaxInt32); n >= 0 {
		id := trace.ID(n)
		search.Allocation = &id
	}
	actions := strings.Split(strings.Join(q.given["action"], ","), ",")
	for a := trace.Alloc; a <= trace.LastAction; a++ {
		if slices.Contains(actions, a.String()) {
			search.Actions = append(search.Actions, a)
		}
	}
	limit := q.number("limit", 100, 1, 1000)
	return ofDevice(q, func(r *recording.Recording) (map[string]any, error) {
		found, next := r.Find(search, limit)
		out := map[string]any{"events": r.Describe(found), "total": len(r.Events)}
		if next >= 0 {
			out["next"] = next
		}
		return out, nil
	})
}

// replayKeys are the parameters of a replay by what they set.
var replayKeys = map[string]string{
	recording.LimitSetting: "limit_bytes", recording.MaxSplitSizeSetting: "max_split_size_bytes",
	recording.GCThresholdSetting: "gc_threshold", recording.RoundupSetting: "roundup",
	recording.GraphPoolSetting: "graph_pool_bytes",
}

func replay(q *query) (any, error) {
	whatIf := recording.WhatIf{
		Limit: optional(q, "limit_bytes", parseBytes), ExpandableSegments: optional(q, "expandable_segments", strconv.ParseBool),
		MaxSplitSize: optional(q, "max_split_size_bytes", parseBytes), GCThreshold: optional(q, "gc_threshold", parseFloat),
		Roundup: optional(q, "roundup", parseInt), GraphPool: optional(q, "graph_pool_bytes", parseBytes),
	}
	return ofDevice(q, func(r *recording.Recording) (*recording.Replay, error) {
		answer, err := r.Replay(whatIf, nil)
		var wrong *recording.WhatIfError
		if errors.As(err, &wrong) {
			q.complain(replayKeys[wrong.Setting], "it is "+wrong.Why)
			return nil, q.err()
		}
		return answer, err
	})
}

// ofBoth answers with what a function says of a device of two snapshots.
func ofBoth[T any](q *query, do func(a, b *recording.Recording, with string) (T, error)) (any, error) {
	with := q.text("with", "")
	return ofDevice(q, func(a *recording.Recording) (none T, err error) {
		b, err := q.files.device(with, q.number("device", recording.BusiestDevice, recording.BusiestDevice, math.MaxInt32))
		if err != nil {
			return none, err
		}
		return do(a, b, with)
	})
}

// around is how many requests are shown on either side of the first difference.
const around = 4

func compare(q *query) (any, error) {
	n := q.rows()
	return ofBoth(q, func(a, b *recording.Recording, with string) (*recording.Compare, error) {
		return recording.NewCompare(recording.CompareInput{File: q.id, Trace: a.Trace}, recording.CompareInput{File: with, Trace: b.Trace},
			trace.Compare(a.Trace, b.Trace), n, around), nil
	})
}

func diff(q *query) (any, error) {
	at, n := q.text("at", "peak"), q.rows()
	return ofBoth(q, func(a, b *recording.Recording, with string) (*recording.Diff, error) {
		d, err := recording.NewDiff(a, b, at, n)
		if err != nil {
			return nil, err
		}
		d.Before.File, d.After.File = q.id, with
		return d, nil
	})
}
