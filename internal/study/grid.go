package study

import (
	"maps"

	"memorymark/internal/workload"
)

// Axis is a key of a workload and the values that it takes in a grid.
type Axis struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// Grid is every combination of the values of its axes, over keys that are the
// same for all.
type Grid struct {
	Base workload.Draft
	Axes []Axis
}

// Point is one combination.
type Point struct {
	Values map[string]string // by key of an axis
	Draft  workload.Draft
}

// Points lists the grid; the last axis changes fastest.
func (g Grid) Points() []Point {
	points := []Point{{Values: map[string]string{}, Draft: maps.Clone(g.Base)}}
	if g.Base == nil {
		points[0].Draft = workload.Draft{}
	}
	for _, a := range g.Axes {
		var next []Point
		for _, p := range points {
			for _, v := range a.Values {
				q := Point{maps.Clone(p.Values), maps.Clone(p.Draft)}
				q.Values[a.Key] = v
				q.Draft.Set(a.Key, v)
				next = append(next, q)
			}
		}
		points = next
	}
	return points
}

// Size is how many points the grid has.
func (g Grid) Size() int {
	n := 1
	for _, a := range g.Axes {
		if n *= len(a.Values); n > MaxCells {
			return n
		}
	}
	return n
}

// MaxCells is the largest grid that is run.
const MaxCells = 10_000
