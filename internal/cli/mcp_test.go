//go:build !race

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"memorymark/internal/testmachine"
	"memorymark/internal/workload"
)

// connect starts memorymark mcp, as an agent does, and returns its session.
func connect(t *testing.T) *mcp.ClientSession {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	done := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		done <- Run(context.WithoutCancel(t.Context()), []string{"mcp"}, fromClient, toClient, &stderr)
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		if code := <-done; code != exitOK || stderr.Len() > 0 {
			t.Errorf("memorymark mcp ended with %d: %s", code, &stderr)
		}
	})
	return session
}

// called calls a tool and returns its text, and its answer.
func called(t *testing.T, s *mcp.ClientSession, name string, arguments map[string]any) (text string, answer map[string]any, failed bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Content {
		text += c.(*mcp.TextContent).Text
	}
	answer, _ = r.StructuredContent.(map[string]any)
	return text, answer, r.IsError
}

func TestMCPTools(t *testing.T) {
	list, err := connect(t).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) != len(agentTools) {
		t.Fatalf("%d tools, want %d", len(list.Tools), len(agentTools))
	}
	for i, tool := range agentTools {
		for _, flag := range tool.flags {
			if tool.cobra().Flags().Lookup(flag) == nil {
				t.Errorf("memorymark %s has no flag --%s", tool.command, flag)
			}
		}
		at := slices.IndexFunc(list.Tools, func(other *mcp.Tool) bool { return other.Name == tool.name })
		properties := list.Tools[at].InputSchema.(map[string]any)["properties"].(map[string]any)
		if i == 0 { // predict, which has every key
			for _, key := range workload.KeyNames() {
				if properties[key] == nil {
					t.Errorf("predict has no argument %s", key)
				}
			}
		}
	}
}

// The answers are those of the command line.
func TestMCPAnswers(t *testing.T) {
	s := connect(t)
	text, answer, failed := called(t, s, "predict", map[string]any{"model": "bert", "batch": 8, "gpu": "a10", "adapter": map[string]any{"kind": "lora", "rank": 8}})
	var stdout bytes.Buffer
	Run(t.Context(), []string{"predict", "bert", "--batch", "8", "--gpu", "a10", "--lora", "8", "--json"}, strings.NewReader(""), &stdout, io.Discard)
	var want map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	if failed || !strings.Contains(text, "At the peak") || !jsonEqual(t, answer, want) {
		t.Errorf("predict: %s\n%v", text, answer)
	}
	text, answer, _ = called(t, s, "predict", map[string]any{"model": "gpt2", "batch": 512, "gpu": "t4"})
	if answer["fits"] != false || !strings.Contains(text, "Does not fit") {
		t.Errorf("what does not fit: %s", text)
	}
	_, answer, _ = called(t, s, "largest_batch", map[string]any{"model": "bert", "gpu": "a10", "engine": "predicted"})
	if n, ok := answer["optimal_batch_size"].(float64); !ok || n < 8 {
		t.Errorf("largest_batch: %v", answer)
	}
	if text, _, failed = called(t, s, "fit", map[string]any{"model": "gpt2", "gpu": "t4", "batch": 128}); failed || !strings.Contains(text, "gpt2") {
		t.Errorf("fit: %s", text)
	}
	if text, _, failed = called(t, s, "plan", map[string]any{"model": "gpt2", "mine": "rtx-4090 x2", "samples": "1M"}); failed || !strings.Contains(text, "2 × rtx-4090") {
		t.Errorf("plan: %s", text)
	}
	file, err := filepath.Abs(filepath.Join(root, "examples/gpt2_oom.pickle.xz"))
	if err != nil {
		t.Fatal(err)
	}
	if text, answer, _ = called(t, s, "explain_snapshot", map[string]any{"file": file}); answer == nil || !strings.Contains(strings.ToLower(text), "out of memory") {
		t.Errorf("explain_snapshot: %s", text)
	}
	if text, _, failed = called(t, s, "list_gpus", nil); failed || !strings.Contains(text, "rtx-4090") {
		t.Errorf("list_gpus: %s", text)
	}
}

func TestMCPRefuses(t *testing.T) {
	s := connect(t)
	for _, test := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{"model": "brt"}, "similar: bert"},
		{map[string]any{"batch": 8}, "missing model"},
		{map[string]any{"model": "bert", "bach": 8}, "did you mean batch"},
		{map[string]any{"model": "bert", "batch": 0}, "at least 1"},
		{map[string]any{"model": "--help"}, `model "--help"`},
	} {
		if text, _, failed := called(t, s, "predict", test.arguments); !failed || !strings.Contains(text, test.want) {
			t.Errorf("%v: %q, want %q", test.arguments, text, test.want)
		}
	}
}

func TestMCPRun(t *testing.T) {
	python := testmachine.Python(t)
	text, answer, failed := called(t, connect(t), "run", map[string]any{
		"gpu": "a10", "limit": "64MiB", "command": []string{python, "-c", "import torch; print('began', flush=True); x = torch.empty(1 << 27, device='cuda')"},
	})
	if failed || answer["fits"] != false || !strings.Contains(text, "began") {
		t.Errorf("%s\n%v", text, answer)
	}
}

// TestAgentFiles compares the files that agents read with what the program prints.
func TestAgentFiles(t *testing.T) {
	guide := testmachine.ReadFile(t, filepath.Join(root, "docs/guide/agents.md"))
	for _, c := range exitCodes {
		if row := fmt.Sprintf("| %d | %s |\n", c.code, c.meaning); !strings.Contains(string(guide), row) {
			t.Errorf("docs/guide/agents.md lacks %q", row)
		}
	}
	for file, write := range map[string]func(io.Writer) error{"SKILL.md": writeSkill, "llms.txt": writeLLMs} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, file)
		if *update {
			testmachine.WriteFile(t, path, b.Bytes())
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b.Bytes()) {
			t.Errorf("%s is not what memorymark mcp prints; make golden writes it again (%v)", file, err)
		}
	}
}

func jsonEqual(t *testing.T, a, b any) bool {
	t.Helper()
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}
