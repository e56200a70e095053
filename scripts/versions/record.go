package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/emulate"
)

// record puts a result in the place of the one for the same minor version.
func record(name string, result emulate.Tested) error {
	var results []emulate.Tested
	data, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, &results)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	results = slices.DeleteFunc(results, func(t emulate.Tested) bool {
		return emulate.Minor(t.Torch) == emulate.Minor(result.Torch)
	})
	results = append(results, result)
	slices.SortFunc(results, func(a, b emulate.Tested) int { return slices.Compare(numbers(a.Torch), numbers(b.Torch)) })
	if data, err = json.MarshalIndent(results, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644) //nolint:gosec // a source of the project
}

func numbers(version string) []int {
	var out []int
	for _, part := range strings.Split(version, ".") {
		n, _ := strconv.Atoi(part) // releases have nothing else
		out = append(out, n)
	}
	return out
}
