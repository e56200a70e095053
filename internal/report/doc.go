// Package report writes results for people: tables, pictures and stand-alone
// pages. It computes no new numbers.
//
// A picture is a list of areas, lines and texts (picture.go) that can be
// written as SVG or PNG; so both come from the same code and look the same.
package report
