// Package study is the memory study of a model: a grid of cells, each a
// workload that is profiled, and what its peaks, phases and largest
// allocations come to. It knows the grid, runs the cells, resumes where a run
// stopped, and knows the study's folder; who profiles a cell, a prediction or
// a GPU, is behind the interface Profiler.
package study

// DefaultCard is the card that a whole study is predicted for where there is
// none: the smaller default of everything else cannot hold its largest sizes.
const DefaultCard = "h200"

// How many steps of a cell run first, and how many are recorded.
const (
	DefaultWarmup = 5
	DefaultSteps  = 1
)
