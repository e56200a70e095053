package steptime

// maxSizes is how many sizes a launch has at most.
const maxSizes = 9

// Launch is a kernel, or something else that a card is told to do.
type Launch struct {
	Kind     Kind
	Type     Type
	Backward bool              // by autograd's thread, not by Python
	Size     [maxSizes]float64 // as its kind has it; what is missing is 0
}

// Counted is a launch and how often it comes.
type Counted struct {
	Launch
	Count float64
}

// Launches are those of a part of a process.
type Launches []Counted

// Add appends a launch.
func (l *Launches) Add(k Kind, t Type, backward bool, size ...float64) {
	c := Counted{Launch: Launch{Kind: k, Type: t, Backward: backward}, Count: 1}
	copy(c.Size[:], size)
	*l = append(*l, c)
}

// Times has every launch n times.
func (l Launches) Times(n float64) Launches {
	out := make(Launches, len(l))
	for i, c := range l {
		c.Count *= n
		out[i] = c
	}
	return out
}

// Distinct joins equal launches, in the order in which they come first.
func (l Launches) Distinct() Launches {
	at, out := make(map[Launch]int, 256), make(Launches, 0, 256)
	for _, c := range l {
		i, ok := at[c.Launch]
		if !ok {
			i = len(out)
			at[c.Launch] = i
			out = append(out, Counted{Launch: c.Launch})
		}
		out[i].Count += c.Count
	}
	return out
}

// Line has the launches of two batches, from which those of any other follow:
// sizes are linear in the batch.
type Line struct{ pairs []pair }

type pair struct {
	a, b  Launch
	count float64
}

// LineOf matches launches of two batches. One that only one of them has is
// dropped: it is of a size that does not grow.
func LineOf(a, b Launches) Line {
	at, out := make(map[[2]Launch]int, 256), Line{}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if !alike(a[i], b[j]) {
			i, j = resume(a, b, i, j)
			continue
		}
		key := [2]Launch{a[i].Launch, b[j].Launch}
		k, ok := at[key]
		if !ok {
			k = len(out.pairs)
			at[key] = k
			out.pairs = append(out.pairs, pair{a: key[0], b: key[1]})
		}
		out.pairs[k].count += a[i].Count
		i++
		j++
	}
	return out
}

func alike(a, b Counted) bool {
	return a.Kind == b.Kind && a.Type == b.Type && a.Backward == b.Backward && a.Count == b.Count
}

// resume finds where two lists are alike again.
func resume(a, b Launches, i, j int) (int, int) {
	for skip := 1; skip < 16; skip++ {
		for k := 0; k <= skip; k++ {
			if x, y := i+skip-k, j+k; x < len(a) && y < len(b) && alike(a[x], b[y]) {
				return x, y
			}
		}
	}
	return i + 1, j + 1
}

// At are the launches of the batch that lies a share of the way from the first to the second.
func (l Line) At(share float64) Launches {
	out := make(Launches, len(l.pairs))
	for i, p := range l.pairs {
		c := Counted{Launch: p.a, Count: p.count}
		for k := range c.Size {
			c.Size[k] += share * (p.b.Size[k] - p.a.Size[k])
		}
		out[i] = c
	}
	return out
}
