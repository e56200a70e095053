package trace

import "strings"

// Metadata returns what the program said of allocations up to an event, each
// text once, in order: what was set when memory was allocated
// (torch.cuda.memory._set_memory_metadata), and annotations
// (torch.cuda.memory._annotate_memory). Allocations it said nothing of are missing.
func (t *Trace) Metadata(event int) map[ID]string {
	said := make(map[ID]string)
	add := func(id ID, note NoteID) {
		text := t.Notes[note].UserMetadata
		switch old := said[id]; {
		case text == "" || id == None:
		case old == "":
			said[id] = text
		case !strings.Contains("; "+old+"; ", "; "+text+"; "):
			said[id] = old + "; " + text
		}
	}
	for _, b := range t.Initial {
		add(b.ID, b.Note)
	}
	for i := range t.Events[:max(0, min(event+1, len(t.Events)))] {
		if e := &t.Events[i]; e.Action == Alloc || e.Action == Annotated {
			add(e.ID, e.Note)
		}
	}
	return said
}
