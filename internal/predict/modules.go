package predict

import (
	"cmp"
	"slices"
	"strconv"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// ModuleBytes is what a module of the model holds: its parameters, their
// gradients and optimizer state, and what its forward and backward made.
type ModuleBytes struct {
	Module string         `json:"module"`
	Bytes  bytesize.Bytes `json:"bytes"`
}

// modulesAt adds up what is live once an event has happened, by module.
func (p *Process) modulesAt(event int) []ModuleBytes {
	byStack := make([]bytesize.Bytes, p.Trace().Stacks.Len())
	for _, l := range p.lives() {
		if int(l.born) <= event && int(l.died) > event {
			byStack[l.module] += bytesize.Bytes(l.size)
		}
	}
	var out []ModuleBytes
	index := make(map[string]int)
	for id, bytes := range byStack {
		frames := p.Trace().Stacks.Frames(trace.StackID(id))
		if len(frames) == 0 || bytes == 0 {
			continue
		}
		name := breakdownModule(frames[0].Name)
		i, ok := index[name]
		if !ok {
			i = len(out)
			index[name] = i
			out = append(out, ModuleBytes{Module: name})
		}
		out[i].Bytes += bytes
	}
	// Equals stay in the order in which forward calls them.
	slices.SortStableFunc(out, func(a, b ModuleBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out
}

// breakdownModule is the module under which a breakdown counts a path: the
// layer that it is in, as "transformer.h.3" for "transformer.h.3.attn".
func breakdownModule(path string) string {
	if list, n, ok := trace.Layer(path); ok {
		return list + "." + strconv.Itoa(n)
	}
	return path
}
