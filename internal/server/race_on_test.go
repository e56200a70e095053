//go:build race

package server

// raceDetector is on in "make test", where the same code takes ten times as long.
const raceDetector = true
