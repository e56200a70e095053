package recording

import (
	"slices"
	"testing"

	"memorymark/internal/trace"
)

// Every row is the sum of its children, and all rows are the live memory.
func TestFlame(t *testing.T) {
	r := open(t)
	f, err := r.Flame("peak")
	if err != nil {
		t.Fatal(err)
	}
	var check func(name string, bytes int64, rows []FlameRow)
	check = func(name string, bytes int64, rows []FlameRow) {
		var sum int64
		for _, row := range rows {
			sum += row.Bytes
			if row.Kind != "category" && row.Kind != "rest" || len(row.Children) > 0 {
				check(row.Name, row.Bytes, row.Children)
			}
		}
		if sum != bytes {
			t.Errorf("%s has %d bytes, its children %d", name, bytes, sum)
		}
	}
	check("all", r.Peak().Bytes, f.Roots)
	if f.LiveBytes != r.Peak().Bytes || f.Event != r.Peak().Event {
		t.Errorf("live %d at %d", f.LiveBytes, f.Event)
	}
	if !slices.ContainsFunc(f.Roots, func(row FlameRow) bool { return row.Kind == "user" && row.Name == "<module> bigsnap.py:19" }) {
		t.Errorf("roots %+v", f.Roots)
	}
}

func TestFlamePath(t *testing.T) {
	frames := []trace.Frame{
		{File: "/x/site-packages/torch/nn/functional.py", Line: 2, Name: "linear"},
		{File: "/x/site-packages/torch/nn/modules/linear.py", Line: 134, Name: "forward"},
		{File: "/x/site-packages/transformers/models/gpt2/modeling_gpt2.py", Line: 240, Name: "forward"},
		{File: "train.py", Line: 9, Name: "main"},
	}
	want := []flameKey{{"main train.py:9", "user"}, {"forward transformers/models/gpt2/modeling_gpt2.py:240", "library"}, {"torch", "torch"}, {"activation", "category"}}
	if got := flamePath(frames, trace.Site{For: trace.Activation}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want = []flameKey{{"h", "library"}, {"*", "library"}, {"attn", "library"}, {"parameter, from before the recording", "category"}}
	if got := flamePath([]trace.Frame{{File: "GPT2LMHeadModel", Name: "h.3.attn"}}, trace.Site{For: trace.Parameter, Before: true}); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
