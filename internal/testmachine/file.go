package testmachine

import (
	"os"
	"testing"
)

// ReadFile reads a file that the test needs.
func ReadFile(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// WriteFile writes a file for this user alone.
func WriteFile[T ~string | ~[]byte](tb testing.TB, path string, data T) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		tb.Fatal(err)
	}
}
