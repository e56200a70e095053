// Package report writes results for people: as text, as tables, and as the
// page of a whole study. It computes no new numbers, and what it draws is drawn
// by package draw.
package report
