package timeline

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"memorymark/internal/trace"
)

// checkInvariants checks what must hold for every timeline.
func checkInvariants(t testing.TB, tr *trace.Trace, tl *Timeline) {
	t.Helper()
	active, err := activeOf(tr, tr.Lifetimes())
	if err != nil {
		t.Fatal(err)
	}
	checkStack(t, tl, active)
	window := active[tl.From : tl.To+1]
	if most := slices.Max(window); tl.Peak.Bytes != most || active[tl.Peak.Event+1] != most {
		t.Errorf("peak = %+v, the highest is %d", tl.Peak, most)
	}
	if whole := tl.From == 0 && tl.To == len(tr.Events); whole && tr.Peak().Event != tl.Peak.Event {
		t.Errorf("peak = %+v, the trace's is %+v", tl.Peak, tr.Peak())
	}
	if slices.Min(tl.Active.Min) != slices.Min(window) || slices.Max(tl.Active.Max) != slices.Max(window) {
		t.Errorf("the active line lost its lowest or highest value")
	}
	var atPeak int64
	for _, g := range tl.Groups {
		atPeak += g.AtPeak
	}
	if atPeak != tl.Peak.Bytes {
		t.Errorf("groups add up to %d at the peak of %d", atPeak, tl.Peak.Bytes)
	}
	for _, s := range tl.Spans {
		if s.From < tl.From || s.To > tl.To || s.From >= s.To || s.Depth >= MaxDepth {
			t.Errorf("span %+v in events %d to %d", s, tl.From, tl.To)
		}
	}
	ticks := tl.TimeTicks(3)
	for i := 1; i < len(ticks); i++ {
		if ticks[i].Column < ticks[i-1].Column+3 || ticks[i].Micros <= ticks[i-1].Micros {
			t.Errorf("ticks %v", ticks)
		}
	}
	if data, err := json.Marshal(tl); err != nil || !json.Valid(data) {
		t.Errorf("JSON: %v", err)
	}
}

// span is what one shape or band takes of a column.
type span struct {
	bottom, top int64
	layer       int
}

// checkStack checks that each column is a gapless pile as high as what was
// active at its moment, the highest of its run, and in the order of the
// categories.
func checkStack(t testing.TB, tl *Timeline, active []int64) {
	t.Helper()
	piles := make([][]span, len(tl.Moments))
	for _, s := range tl.Shapes {
		layer := layerOf(&trace.Lifetime{Alloc: s.Born, For: s.For})
		for i, step := range s.Steps {
			end := s.End
			if i+1 < len(s.Steps) {
				end = s.Steps[i+1].Column
			}
			if step.Column >= end {
				t.Fatalf("shape %d has an empty step: %+v", s.ID, s)
			}
			for c := step.Column; c < end; c++ {
				piles[c] = append(piles[c], span{step.Offset, step.Offset + s.Size, layer})
			}
		}
	}
	for _, b := range tl.Bands {
		for c, h := range b.Heights {
			if h < 0 {
				t.Fatalf("band of group %d is %d high in column %d", b.Group, h, c)
			}
			piles[c] = append(piles[c], span{b.Bottoms[c], b.Bottoms[c] + h, b.layer})
		}
	}
	top := make([]int64, len(tl.Moments))
	for c, pile := range piles {
		slices.SortFunc(pile, func(a, b span) int { return cmp.Or(cmp.Compare(a.bottom, b.bottom), cmp.Compare(a.top, b.top)) })
		layer := -1
		for _, s := range pile {
			if s.bottom != top[c] {
				t.Fatalf("something stands at %d in column %d, on a pile of %d", s.bottom, c, top[c])
			}
			if top[c] = s.top; s.top == s.bottom {
				continue
			}
			if s.layer < layer {
				t.Fatalf("column %d has layer %d above layer %d", c, s.layer, layer)
			}
			layer = s.layer
		}
	}
	for c, moment := range tl.Moments {
		start, end := tl.bounds(c)
		if moment < start || moment >= end {
			t.Fatalf("column %d shows %d and stands for %d to %d", c, moment, start, end)
		}
		if most := slices.Max(active[start+1 : end+1]); top[c] != most || tl.Active.Max[c] != most || active[moment+1] != most {
			t.Fatalf("column %d is %d high, the line is at %d, active is %d", c, top[c], tl.Active.Max[c], most)
		}
	}
}

// random returns a trace of n events or so that a program could have made.
func random(rng *rand.Rand, n int) *trace.Trace {
	tr := trace.New(0, trace.NewTables())
	var live []trace.Event
	now, next := int64(1_794_703_114_949_239), uint64(1)
	var stacks []trace.StackID
	for i := range 40 {
		f := tr.Stacks.AddFrame(trace.Frame{File: "model.py", Name: "forward", Line: i})
		stacks = append(stacks, tr.Stacks.Add([]trace.FrameID{f}))
	}
	for len(tr.Events) < n {
		now += rng.Int64N(50)
		if len(live) > 0 && rng.IntN(100) < 49 {
			i := rng.IntN(len(live))
			e := live[i]
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			e.Time, e.Action = now, trace.FreeRequested
			tr.Events = append(tr.Events, e)
			e.Action = trace.FreeCompleted
			tr.Events = append(tr.Events, e)
			continue
		}
		e := trace.Event{
			Action: trace.Alloc, Addr: next, Size: 1 << rng.IntN(28), Time: now,
			Stack: stacks[rng.IntN(len(stacks))], For: trace.Category(rng.IntN(8)),
		}
		next += 4096
		live = append(live, e)
		if len(tr.Events) > 0 || rng.IntN(4) == 0 { // else it was there before
			tr.Events = append(tr.Events, e)
		}
	}
	tr.Link()
	return tr
}

func TestRandomTraces(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tr := random(rng, 1+rng.IntN(600))
		from := rng.IntN(len(tr.Events) + 1)
		for _, opts := range []Options{
			{},
			{Columns: 1 + rng.IntN(50)},
			{Detail: 1 + rng.IntN(20), Columns: 37},
			{Steps: 1 + rng.IntN(60), ByStack: true},
			{From: from, To: min(len(tr.Events), from+1+rng.IntN(100))},
		} {
			if opts.To == 0 {
				opts.From = 0
			}
			checkInvariants(t, tr, build(t, tr, opts))
		}
	}
}

// FuzzBuild reads a trace from bytes, three an event, and draws it.
func FuzzBuild(f *testing.F) {
	f.Add([]byte{1, 2, 3}, 0, 0, 10, 5, 100)
	f.Add([]byte{0, 1, 20, 0, 2, 63, 1, 1, 0, 2, 1, 0, 8, 0, 9, 9, 3, 1}, 1, 3, 2, 1, 3)
	f.Fuzz(func(t *testing.T, data []byte, from, to, columns, detail, steps int) {
		tr := traceOf(data)
		opts := Options{From: from, To: to, Columns: columns, Detail: detail, Steps: steps, ByStack: len(data)%2 == 0}
		tl, err := Build(tr, nil, Levels{Reserved: Reserved(tr)}, opts)
		if err != nil {
			return
		}
		checkInvariants(t, tr, tl)
	})
}

func traceOf(data []byte) *trace.Trace {
	tr := trace.New(0, trace.NewTables())
	now := int64(1)
	for ; len(data) >= 3; data = data[3:] {
		kind, slot, size := data[0], data[1], data[2]
		now += int64(size) << (slot % 60) // may turn around, as hostile clocks do
		if kind%16 > 8 {
			tr.Marks = append(tr.Marks, trace.Mark{Name: string(rune('a' + slot%3)), Event: len(tr.Events), End: kind%2 == 0})
			continue
		}
		tr.Events = append(tr.Events, trace.Event{
			Action: trace.Action(kind%16) + 1, Addr: uint64(slot % 8), Size: int64(slot) << (size % 56),
			Time: now, For: trace.Category(size % 8),
		})
	}
	if len(data) > 0 {
		tr.Final = []trace.Segment{{Addr: 0, Size: int64(data[0]) << 20}}
	}
	tr.Link()
	return tr
}

func BenchmarkBuildMillionEvents(b *testing.B) {
	tr := random(rand.New(rand.NewPCG(1, 2)), 1_000_000)
	for name, opts := range map[string]Options{"picture": {}, "zoomable": Zoomable} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				build(b, tr, opts)
			}
		})
	}
}
