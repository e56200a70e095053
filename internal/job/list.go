package job

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// Filter says which jobs to list, newest first. Empty fields do not filter.
type Filter struct {
	States []State           // any of them
	Cards  []string          // any of them
	Labels map[string]string // all of them
	Text   string            // in some label's value, in any case
	Since  time.Time         // submitted then or later
	Until  time.Time         // submitted before

	After string // jobs that come after the one with this id: the last of the page before
	Limit int    // at most this many, 0 for DefaultLimit
}

// DefaultLimit and MaxLimit are how many jobs a page has. One whose payloads and
// reasons have more than maxPageBytes ends earlier.
const (
	DefaultLimit = 50
	MaxLimit     = 500
	maxPageBytes = 4 << 20
)

// Page is a part of a list.
type Page struct {
	Jobs  []Job
	Total int    // that match, on all pages
	Next  string // for Filter.After, empty on the last page
}

// List returns a page of the history. It waits until the history is loaded.
func (q *Queue) List(ctx context.Context, f Filter) (*Page, error) {
	if f.Limit <= 0 {
		f.Limit = DefaultLimit
	}
	f.Limit = min(f.Limit, MaxLimit)
	after, ok := parseID(f.After)
	if f.After != "" && !ok {
		return nil, &InvalidError{"after", "is not the id of a job"}
	}
	if err := q.index.wait(ctx); err != nil {
		return nil, err
	}
	ids, total := q.index.scan(f, after)
	p := &Page{Jobs: make([]Job, 0, min(len(ids), f.Limit)), Total: total}
	held := 0
	for i, id := range ids {
		if i == f.Limit || held > maxPageBytes {
			p.Next = ids[i-1].String()
			break
		}
		j, err := q.Get(ctx, id.String())
		if errors.Is(err, ErrNotFound) {
			p.Total-- // it is gone, and the index has yet to hear of it
			continue
		}
		if err != nil {
			return nil, err
		}
		p.Jobs = append(p.Jobs, *j)
		held += len(j.Payload) + len(j.Reason)
	}
	return p, nil
}

// scan returns the ids of a page and one more if there is one, and how many
// jobs match.
func (x *index) scan(f Filter, after id) (ids []id, total int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	match := x.compile(f)
	end := len(x.rows)
	if f.After != "" {
		end, _ = x.find(after)
	}
	for i := len(x.rows) - 1; i >= 0; i-- {
		if !match(&x.rows[i]) {
			continue
		}
		total++
		if i < end && len(ids) <= f.Limit {
			ids = append(ids, x.rows[i].id)
		}
	}
	return ids, total
}

// compile turns a filter into tables of the numbers that rows have.
func (x *index) compile(f Filter) func(*row) bool {
	states := make([]bool, deleted+1)
	for i, s := range States {
		states[i] = len(f.States) == 0 || slices.Contains(f.States, s)
	}
	cards := make([]bool, len(x.cards.strings))
	for i, c := range x.cards.strings {
		cards[i] = len(f.Cards) == 0 || slices.Contains(f.Cards, c)
	}
	labels := make([]bool, len(x.labels.asMap))
	text := strings.ToLower(f.Text)
	for i, set := range x.labels.asMap {
		labels[i] = hasLabels(set, f.Labels) && hasText(set, text)
	}
	since, until := int64(math.MinInt64), int64(math.MaxInt64)
	if !f.Since.IsZero() {
		since = f.Since.UnixMicro()
	}
	if !f.Until.IsZero() {
		until = f.Until.UnixMicro()
	}
	return func(r *row) bool {
		return states[r.state] && cards[r.card] && labels[r.labels] && since <= r.queued && r.queued < until
	}
}

func hasLabels(set, want map[string]string) bool {
	for name, value := range want {
		if got, ok := set[name]; !ok || got != value {
			return false
		}
	}
	return true
}

func hasText(set map[string]string, text string) bool {
	if text == "" {
		return true
	}
	for _, value := range set {
		if strings.Contains(strings.ToLower(value), text) {
			return true
		}
	}
	return false
}

// Stats says how many jobs there are.
type Stats struct {
	ByState      map[State]int
	OldestQueued time.Time // when the job that waits longest was submitted; zero if none waits
}

// Stats counts the jobs. It waits until the history is loaded.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	s := Stats{ByState: make(map[State]int)}
	if err := q.index.wait(ctx); err != nil {
		return s, err
	}
	q.index.mu.RLock()
	defer q.index.mu.RUnlock()
	var counts [deleted + 1]int
	for i := range q.index.rows {
		counts[q.index.rows[i].state]++
	}
	for i, state := range States {
		s.ByState[state] = counts[i]
	}
	for _, r := range q.index.open {
		if r.State == Queued && (s.OldestQueued.IsZero() || r.Queued.Before(s.OldestQueued)) {
			s.OldestQueued = r.Queued
		}
	}
	return s, nil
}
