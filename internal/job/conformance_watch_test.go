package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The cases of those who watch and list.

func replay(b *bench) {
	j := b.submit(`{}`)
	lease := b.take(b.link())
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprint(i))
		b.must(lease.say(b.ctx, want[i]))
	}
	b.must(lease.succeed(b.ctx, "{}"))
	for from := range 11 {
		var seq uint64
		if from > 0 {
			seq = nthSeq(b, j.ID, from)
		}
		events, err := b.q.Watch(b.ctx, j.ID, seq)
		b.must(err)
		said, last := collect(events)
		if !slices.Equal(said, want[from:]) || last == nil || last.State != Succeeded {
			b.Errorf("from %d: %v, then %+v", from, said, last)
		}
	}
}

// nthSeq returns the number of a job's nth event.
func nthSeq(b *bench, id string, n int) uint64 {
	b.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	events, err := b.q.Watch(ctx, id, 0)
	b.must(err)
	for e := range events {
		if e.Job != nil {
			continue
		}
		if n--; n == 0 {
			return e.Seq
		}
	}
	b.Fatal("too few events")
	return 0
}

func watchLive(b *bench) {
	j := b.submit(`{}`)
	const n = 50
	var watchers sync.WaitGroup
	for range 5 {
		events, err := b.q.Watch(b.ctx, j.ID, 0)
		b.must(err)
		watchers.Go(func() {
			said, last := collect(events)
			if len(said) != n || !slices.IsSortedFunc(said, func(x, y string) int { return len(x) - len(y) }) || last == nil || last.State != Failed {
				b.Errorf("saw %d events and %+v", len(said), last)
			}
		})
	}
	lease := b.take(b.link())
	for i := range n {
		b.must(lease.say(b.ctx, fmt.Sprintf(`"%*d"`, i+2, i)))
	}
	b.must(lease.fail(b.ctx, "no luck"))
	watchers.Wait()
}

func watchAttempts(b *bench) {
	j := b.submit(`{}`)
	old := b.take(b.link())
	b.must(old.say(b.ctx, `"old 1"`))
	now := b.take(b.link())
	b.must(now.say(b.ctx, `"new 1"`))
	if err := old.say(b.ctx, `"old 2"`); !errors.Is(err, ErrLost) {
		b.Errorf("the old attempt may speak: %v", err)
	}
	b.must(now.say(b.ctx, `"new 2"`))
	b.must(now.succeed(b.ctx, "{}"))
	events, err := b.q.Watch(b.ctx, j.ID, 0)
	b.must(err)
	if said, _ := collect(events); !slices.Equal(said, []string{`"old 1"`, `"new 1"`, `"new 2"`}) {
		b.Errorf("saw %v", said)
	}
}

func lists(b *bench) {
	var ids []string
	for i := range 7 {
		model := []string{"Bert", "gpt2"}[i%2]
		j, _, err := b.q.Submit(b.ctx, Request{
			Card: b.card, Payload: json.RawMessage(fmt.Sprint(i)), Labels: map[string]string{"model": model, "precision": "fp32"},
		})
		b.must(err)
		ids = append(ids, j.ID)
		b.eventually("the clock goes on", func() bool { return time.Now().Truncate(time.Millisecond).After(j.Queued) })
	}
	_, err := b.q.Cancel(b.ctx, ids[3], "")
	b.must(err)
	slices.Reverse(ids) // newest first: 6 5 4 3 2 1 0
	third := b.get(ids[4]).Queued
	for name, c := range map[string]struct {
		f    Filter
		want []string
	}{
		"all":          {Filter{}, ids},
		"a state":      {Filter{States: []State{Cancelled}}, ids[3:4]},
		"states":       {Filter{States: []State{Cancelled, Queued}}, ids},
		"a label":      {Filter{Labels: map[string]string{"model": "gpt2"}}, []string{ids[1], ids[3], ids[5]}},
		"labels":       {Filter{Labels: map[string]string{"model": "gpt2", "precision": "bf16"}}, nil},
		"text":         {Filter{Text: "BERT"}, []string{ids[0], ids[2], ids[4], ids[6]}},
		"other text":   {Filter{Text: "llama"}, nil},
		"since":        {Filter{Since: third}, ids[:5]},
		"until":        {Filter{Until: third}, ids[5:]},
		"label, state": {Filter{Labels: map[string]string{"model": "gpt2"}, States: []State{Queued}}, []string{ids[1], ids[5]}},
	} {
		c.f.Cards = []string{b.card}
		for _, limit := range []int{0, 1, 2, 3} {
			c.f.Limit, c.f.After = limit, ""
			var got []string
			for {
				page, err := b.q.List(b.ctx, c.f)
				b.must(err)
				if page.Total != len(c.want) {
					b.Errorf("%s: total %d, want %d", name, page.Total, len(c.want))
				}
				for _, j := range page.Jobs {
					got = append(got, j.ID)
				}
				if c.f.After = page.Next; page.Next == "" {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				b.Errorf("%s by %d: %v, want %v", name, limit, got, c.want)
			}
		}
	}
	if _, err := b.q.List(b.ctx, Filter{After: "*"}); err == nil {
		b.Error("listed after *")
	}
}
