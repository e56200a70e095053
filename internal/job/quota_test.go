package job

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestHistoryQuota fills a history beyond its quota, in jobs and in bytes: the
// oldest that have ended go, and none that has not.
func TestHistoryQuota(t *testing.T) {
	for name, limit := range map[string]func(*Queue){
		"jobs":  func(q *Queue) { q.maxHistory = 20 },
		"bytes": func(q *Queue) { q.config.HistoryBytes = 50_000 },
	} {
		t.Run(name, func(t *testing.T) {
			q := openEmbedded(t, func(c *Config) { c.Lease = DefaultLease })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
			waits := b.submit(`"waits"`)
			var ended []string
			for i := range 30 {
				j := b.submit(fmt.Sprintf(`{"n":%d,"much":"%s"}`, i, strings.Repeat("x", 2000)))
				_, err := q.Cancel(ctx, j.ID, "")
				b.must(err)
				ended = append(ended, j.ID)
			}
			b.must(q.trim(ctx))
			if page, err := q.List(ctx, Filter{Limit: MaxLimit}); err != nil || page.Total != 31 {
				t.Errorf("within the quota, %d of 31 jobs are left, %v", page.Total, err)
			}
			limit(q)
			b.must(q.trim(ctx))
			page, err := q.List(ctx, Filter{Limit: MaxLimit})
			b.must(err)
			if page.Total > 22 || page.Total < 10 || page.Jobs[0].ID != ended[len(ended)-1] || page.Jobs[page.Total-1].ID != waits.ID {
				t.Errorf("%d jobs are left, from %+v to %+v", page.Total, page.Jobs[0], page.Jobs[page.Total-1])
			}
			before := page.Total
			b.must(q.trim(ctx))
			if page, err := q.List(ctx, Filter{Limit: MaxLimit}); err != nil || page.Total != before {
				t.Errorf("a second time: %d jobs are left, %v", page.Total, err)
			}
		})
	}
}

// TestEventPages reads what a worker said page by page.
func TestEventPages(t *testing.T) {
	q := openEmbedded(t, func(c *Config) { c.Lease = DefaultLease })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	b := &bench{T: t, ctx: ctx, q: q, card: "t4"}
	j := b.submit(`1`)
	lease := b.take(b.link())
	for i := range 25 {
		b.must(lease.say(ctx, fmt.Sprint(i)))
	}
	if err := lease.say(ctx, `"`+strings.Repeat("x", MaxEvent)+`"`); err == nil {
		t.Error("an event is as large as its worker likes")
	}
	b.must(lease.succeed(ctx, `1`))
	var got []string
	pages := 0
	for after := uint64(0); ; pages++ {
		p, err := q.Events(ctx, j.ID, after, 10)
		b.must(err)
		for _, e := range p.Events {
			got = append(got, string(e.Data))
		}
		if after = p.Next; after == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if len(got) != 25 || pages != 2 || got[24] != "24" {
		t.Errorf("%d pages after the first: %v", pages, got)
	}
}
