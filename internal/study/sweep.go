package study

// Sweep is the results of a grid.
type Sweep struct {
	Axes  []Axis      `json:"axes"`
	Cells []SweepCell `json:"cells"`
}

// SweepCell is a cell of the grid and what it came to.
type SweepCell struct {
	Values map[string]string `json:"values"` // by key of the axes
	*Result
}

// Varied are the axes that take more than one value.
func (s *Sweep) Varied() []Axis {
	var out []Axis
	for _, a := range s.Axes {
		if len(a.Values) > 1 {
			out = append(out, a)
		}
	}
	return out
}
