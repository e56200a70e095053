// Package study is the memory study of a model: a grid of cells, each a
// workload that is profiled, and what its peaks, phases and largest
// allocations come to. It knows the grid, runs the cells, resumes where a run
// stopped, and knows the study's folder; who profiles a cell, a prediction or
// a GPU, is behind the interface Profiler.
package study

// The kinds of evidence.
const (
	Predicted = "predicted"
	Measured  = "measured"
)
