package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"memorymark/internal/nearest"
	"memorymark/internal/server"
)

func newMCP(e *env) *cobra.Command {
	var skill, llms bool
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve agents, by the Model Context Protocol on stdin and stdout",
		Long: "Serves an agent's questions by the Model Context Protocol, over standard input and output.\n" +
			"Its tools are commands of memorymark: their arguments are the flags, the answer is text and\n" +
			"the JSON of --json. The tool run executes the command that it is given, as a shell would.\n\n" +
			"--skill prints a SKILL.md for agents that read skills, --llms an llms.txt.",
		Example: "  memorymark mcp\n" +
			"  memorymark mcp --skill > SKILL.md",
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case skill:
				return writeSkill(e.stdout)
			case llms:
				return writeLLMs(e.stdout)
			}
			s, err := newMCPServer()
			if err != nil {
				return err
			}
			return s.Run(c.Context(), &mcp.IOTransport{Reader: io.NopCloser(e.stdin), Writer: leaveOpen{e.stdout}})
		},
	}
	c.Flags().BoolVar(&skill, "skill", false, "print a SKILL.md and end")
	c.Flags().BoolVar(&llms, "llms", false, "print an llms.txt and end")
	return c
}

// leaveOpen is a writer whose owner closes it.
type leaveOpen struct{ io.Writer }

func (leaveOpen) Close() error { return nil }

// newMCPServer returns a server of the tools.
func newMCPServer() (*mcp.Server, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "memorymark", Version: currentVersion().Version}, &mcp.ServerOptions{Instructions: agentIntroduction})
	for _, t := range agentTools {
		schema, err := t.schema()
		if err != nil {
			return nil, err
		}
		no := false
		s.AddTool(&mcp.Tool{
			Name: t.name, Title: t.cobra().Short, Description: t.purpose, InputSchema: schema,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.executes, OpenWorldHint: &no},
		}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return t.call(ctx, r.Params.Arguments), nil
		})
	}
	return s, nil
}

// cobra returns the command that answers a tool.
func (t *agentTool) cobra() *cobra.Command {
	c, _, err := newRoot(&env{}).Find(strings.Fields(t.command))
	if err != nil {
		panic(fmt.Sprintf("cli: the tool %s has no command: %v", t.name, err)) // the table is part of the program
	}
	return c
}

// schema describes the arguments of a tool: of its command's flags, those that are
// keys of a workload, as the API has them, and those that the tool names.
func (t *agentTool) schema() (map[string]any, error) {
	keys, err := server.WorkloadProperties()
	if err != nil {
		return nil, err
	}
	properties := make(map[string]any)
	t.cobra().LocalFlags().VisitAll(func(f *pflag.Flag) {
		name := settingName(f)
		switch {
		case keys[name] != nil && t.asksWorkload:
			properties[name] = keys[name]
		case slices.Contains(t.flags, f.Name):
			properties[name] = flagSchema(f)
		}
	})
	var required []string
	for _, a := range t.arguments {
		properties[a.name] = a.schema
		required = append(required, a.name)
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		out["required"] = required
	}
	return out, nil
}

// flagSchema is the schema of a flag that is no key of a workload.
func flagSchema(f *pflag.Flag) map[string]any {
	_, usage := pflag.UnquoteUsage(f)
	kind := f.Value.Type()
	if named, ok := f.Value.(namedValue); ok {
		kind = named.Value.Type()
	}
	return map[string]any{"type": schemaType(kind), "description": usage}
}

func schemaType(flag string) string {
	switch flag {
	case "bool":
		return "boolean"
	case "int", "int64":
		return "integer"
	case "float64":
		return "number"
	}
	return "string"
}

// call answers a call of a tool by running its command. What the command says no to
// is an answer; what is wrong with the arguments is an error that the agent can read.
func (t *agentTool) call(ctx context.Context, arguments json.RawMessage) *mcp.CallToolResult {
	var stdout, stderr, text bytes.Buffer
	args, err := t.commandLine(arguments)
	if err == nil {
		e := &env{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, text: &text}
		root := newRoot(e)
		root.SetArgs(args)
		err = root.ExecuteContext(ctx)
	}
	var theirs exitStatus
	if err != nil && !errors.Is(err, errNo) && !errors.As(err, &theirs) {
		var message strings.Builder
		printError(&message, err)
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: message.String()}}}
	}
	output, answer := splitAnswer(stdout.Bytes())
	content := []mcp.Content{&mcp.TextContent{Text: text.String()}}
	if t.executes {
		content = append(content, &mcp.TextContent{Text: "Output of the command:\n" + tail(output)}, &mcp.TextContent{Text: "Errors of the command:\n" + tail(stderr.Bytes())})
	}
	if len(answer) > maxAnswer {
		content = append(content, &mcp.TextContent{Text: fmt.Sprintf("Its JSON has %d KiB; memorymark %s --json prints it.", len(answer)>>10, t.command)})
		answer = nil
	}
	result := &mcp.CallToolResult{Content: content}
	if answer != nil {
		result.StructuredContent = answer
	}
	return result
}

// splitAnswer splits what a command wrote into the output of a program that it ran and
// the answer in JSON.
func splitAnswer(stdout []byte) (output []byte, answer json.RawMessage) {
	stdout = bytes.TrimSpace(stdout)
	at := bytes.LastIndex(stdout, []byte("\n{\"")) + 1 // run writes its answer in a line
	if at == 0 && !json.Valid(stdout) {
		return stdout, nil
	}
	if json.Valid(stdout) {
		at = 0
	}
	answer = slices.Clone(stdout[at:])
	if !bytes.HasPrefix(answer, []byte("{")) { // structured content is an object
		answer = slices.Concat([]byte(`{"list":`), answer, []byte("}"))
	}
	return stdout[:at], answer
}

// maxAnswer is the size of an answer in JSON beyond which an agent gets only its text:
// that of a plan, with its programs, would fill a context.
const maxAnswer = 32 << 10

// maxTail is how much of a program's output an agent gets.
const maxTail = 4 << 10

func tail(output []byte) string {
	if len(output) > maxTail {
		return "…" + strings.ToValidUTF8(string(output[len(output)-maxTail:]), "")
	}
	return string(output)
}

// commandLine turns the arguments of a call into those of the command.
func (t *agentTool) commandLine(arguments json.RawMessage) ([]string, error) {
	given := make(map[string]json.RawMessage)
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &given); err != nil {
			return nil, fmt.Errorf("the arguments must be an object: %w", err)
		}
	}
	schema, err := t.schema()
	if err != nil {
		return nil, err
	}
	known := schema["properties"].(map[string]any)
	args := append(strings.Fields(t.command), "--json")
	for name, raw := range given {
		if known[name] == nil {
			return nil, badUsage("", "%s has no argument %q%s", t.name, name, suggestion(name, known))
		}
		if !slices.ContainsFunc(t.arguments, func(a argument) bool { return a.name == name }) && string(raw) != "null" {
			args = append(args, "--"+flagName(name)+"="+flagText(raw))
		}
	}
	for _, a := range t.arguments {
		values, err := a.values(given[a.name])
		if err != nil {
			return nil, err
		}
		args = append(append(args, "--"), values...)
	}
	return args, nil
}

// flagText writes a value as a flag has it: text without its quotes.
func flagText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func suggestion(name string, known map[string]any) string {
	var names []string
	for k := range known {
		names = append(names, k)
	}
	slices.Sort(names)
	if near := nearest.To(name, names); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return "; it has " + strings.Join(names, ", ")
}

// argument is an argument of a command that is no flag.
type argument struct {
	name   string
	schema map[string]any
}

// values are the words that an argument becomes.
func (a argument) values(raw json.RawMessage) ([]string, error) {
	var one string
	var many []string
	switch {
	case json.Unmarshal(raw, &one) == nil && one != "" && a.schema["type"] == "string":
		return []string{one}, nil
	case json.Unmarshal(raw, &many) == nil && len(many) > 0 && a.schema["type"] == "array":
		return many, nil
	}
	return nil, badUsage("", "missing %s: %s", a.name, a.schema["description"])
}
