package emulate

import (
	"debug/elf"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOldSystems holds the library to what systems of 2014 have: wheels promise
// glibc 2.17.
func TestOldSystems(t *testing.T) {
	file := filepath.Join(t.TempDir(), libraryName)
	if err := Build(t.Context(), "cc", file); err != nil {
		t.Fatal(err)
	}
	library, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	symbols, err := library.ImportedSymbols()
	if err != nil || len(symbols) == 0 {
		t.Fatalf("%d symbols, %v", len(symbols), err)
	}
	for _, s := range symbols {
		minor, ok := strings.CutPrefix(s.Version, "GLIBC_2.")
		minor, _, _ = strings.Cut(minor, ".")
		if n, err := strconv.Atoi(minor); ok && (err != nil || n > 17) {
			t.Errorf("%s needs %s", s.Name, s.Version)
		}
	}
}
