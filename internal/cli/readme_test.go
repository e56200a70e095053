package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

// TestReadme runs the README's first command and holds the README to what it
// prints.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const prompt = "$ go run ./cmd/memorymark "
	_, rest, ok := strings.Cut(string(data), prompt)
	if !ok {
		t.Fatal("the README shows no command")
	}
	command, rest, _ := strings.Cut(rest, "\n")
	shown, _, _ := strings.Cut(rest, "```")
	var stdout, stderr bytes.Buffer
	if code := Run(context.Background(), strings.Fields(command), nil, &stdout, &stderr); code != 0 {
		t.Fatalf("%s: exit code %d: %s", command, code, &stderr)
	}
	if stdout.String() != shown {
		t.Errorf("%s prints\n%s\nthe README shows\n%s", command, &stdout, shown)
	}
}
