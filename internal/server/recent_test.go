package server

import "testing"

func TestRecent(t *testing.T) {
	r := newRecent[int](10)
	has := func(want ...string) {
		t.Helper()
		if len(r.entries) != len(want) || r.order.Len() != len(want) {
			t.Errorf("%d values, want %v", len(r.entries), want)
		}
		for _, key := range want {
			if _, ok := r.entries[key]; !ok {
				t.Errorf("%s is gone", key)
			}
		}
	}
	r.put("a", 1, 4)
	r.put("b", 2, 4)
	if v, ok := r.get("a"); !ok || v != 1 {
		t.Errorf("a is %d, %v", v, ok)
	}
	r.put("c", 3, 4) // b was not used for longest
	has("a", "c")
	r.put("coming", 4, 0)
	r.put("huge", 5, 99) // beyond the budget it is alone, but for what is on its way
	has("coming", "huge")
	r.removeValue("huge", 6)
	has("coming", "huge")
	r.removeValue("huge", 5)
	r.put("coming", 4, 10)
	has("coming")
	if r.held != 10 {
		t.Errorf("%d held", r.held)
	}
}
