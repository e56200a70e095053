// Package cli is MemoryMark's command line: one file per command, each a
// constructor that binds its flags, and one Run that turns the outcome into
// an exit code. Results go to stdout; errors and progress go to stderr.
//
//	memorymark snapshot top oom.pickle --at oom
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memorymark/internal/gpu"
	"memorymark/internal/report"
	"memorymark/internal/sandbox"
)

// Run runs one command line and returns the exit code of the process.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	sandbox.Enter() // and do not come back, if this process is to be one
	if program, err := os.Executable(); err == nil {
		_ = os.Setenv("PATH", pathOfUser(program, os.Getenv("PATH"), os.Getenv("VIRTUAL_ENV")))
	}
	e := &env{stdin: stdin, stdout: stdout, stderr: stderr}
	ctx, stop := e.untilSignal(ctx)
	defer stop()
	root := newRoot(e)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		unquoteHelp(root)
	}
	root.SetArgs(args)
	err := endedBy(ctx, root.ExecuteContext(ctx))
	printError(stderr, err)
	if e.json || asksForJSON(args) {
		e.printErrorJSON(err)
	}
	return exitCode(err)
}

// asksForJSON looks for the flag behind one that is wrong, where no one read
// it. What follows -- is another program's.
func asksForJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "--json":
			return true
		}
	}
	return false
}

// env is what every command gets: where to read and write, and the flags that
// all commands share.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	text           io.Writer // gets the text of an answer in JSON; nil if that is not needed
	json           bool
	download       bool        // of a config.json from the Hugging Face Hub
	printed        bool        // a result
	endsItself     atomic.Bool // when it is told to, and may take longer than endTime

	liveOnce sync.Once
	liveLine *liveLine

	machine sync.Once // asks for this machine's card,
	card    *gpu.Card // nil if it has none
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "memorymark",
		Short: "Find out where GPU memory goes in training, and what to do about it",
		Long: "MemoryMark shows where GPU memory goes when a neural network trains, and what to do\n" +
			"about it.",
		Annotations: map[string]string{"footer": exitCodeHelp()},
		Example: "  memorymark predict bert --batch 32 --gpu a10\n" +
			"  memorymark snapshot top oom.pickle --at oom",
		Args:          cobra.ArbitraryArgs,
		RunE:          runGroup,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	setHelp(root, e.width(0))
	root.SetFlagErrorFunc(badFlag)
	root.Version = currentVersion().String()
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().BoolVar(&e.json, "json", false, "print JSON instead of text")
	root.AddCommand(
		newAnalyze(e),
		newPredict(e),
		newPlan(e),
		newFit(e),
		newRun(e),
		newRequest(e),
		newReportAccuracy(e),
		newStudy(e),
		newCheck(e),
		newModels(e),
		newGPUs(e),
		newSnapshot(e),
		newServe(e),
		newMCP(e),
		newWorker(e),
		newValidate(e),
		newDoctor(e),
		newCompletion(),
		newMan(e),
		newVersion(e),
	)
	for _, c := range append(studyCommands(e), dataCommands(e)...) {
		c.Hidden = true // the first name, without study or serve
		root.AddCommand(c)
	}
	addCompletions(root)
	return root
}

// runGroup is the RunE of a command that only holds others: alone it prints
// help, with an argument that argument is a command that does not exist.
func runGroup(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	hint := seeHelp(c)
	if c.SuggestionsMinimumDistance <= 0 {
		c.SuggestionsMinimumDistance = 2
	}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", c.CommandPath()+" "+strings.Join(near, " or "))
	}
	return badUsage(hint, "unknown command %q", c.CommandPath()+" "+args[0])
}

// exactArgs is cobra.ExactArgs with an error that names what is missing.
func exactArgs(names ...string) cobra.PositionalArgs { return someArgs(len(names), names...) }

// someArgs is cobra.RangeArgs with such an error: the first min are needed.
func someArgs(needed int, names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < needed:
			return badUsage(seeHelp(c), "missing %s", strings.Join(names[len(args):needed], " and "))
		case len(args) > len(names):
			return badUsage(seeHelp(c), "unexpected argument %q", args[len(names)])
		}
		return nil
	}
}

// print writes a result: as JSON if the user asked for it, else as the text
// that the function writes. Colours vanish where stdout is not a terminal.
func (e *env) print(result any, text func(w io.Writer, width int) error) error {
	return e.printIn(e.width(pipeWidth), result, text)
}

// printTable is print for a table that people search.
func (e *env) printTable(result any, text func(w io.Writer, width int) error) error {
	return e.printIn(e.width(tableWidth), result, text)
}

func (e *env) printIn(width int, result any, text func(w io.Writer, width int) error) error {
	e.printed = true
	if e.json && e.text != nil {
		if err := report.WriteText(e.text, width, text); err != nil {
			return err
		}
	}
	if e.json {
		return writeJSON(e.stdout, result)
	}
	return writeText(e.stdout, width, text)
}

// writeText writes text, with colours and bold type only to a terminal that shows them.
func writeText(w io.Writer, width int, text func(w io.Writer, width int) error) error {
	if !showsStyle(w) {
		return report.WriteText(w, width, text)
	}
	var b bytes.Buffer
	if err := text(&b, width); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// showsStyle reports whether text may have styles. NO_COLOR with any value takes them
// away, and CLICOLOR_FORCE has them in pipes too (no-color.org, bixense.com/clicolors).
func showsStyle(w io.Writer) bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" || !slices.Contains([]string{"", "0"}, os.Getenv("CLICOLOR_FORCE"))
}

// printNo prints an answer, and returns why it is no.
func (e *env) printNo(why error, result any, text func(w io.Writer, width int) error) error {
	if err := e.print(result, text); err != nil {
		return err
	}
	return why
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// The widths of text where there is no terminal: of most, and of tables that
// people search, which are whole.
const (
	pipeWidth  = 100
	tableWidth = 160
)

// width returns how wide text may be: what a terminal has within reason, or
// what is given for where there is none.
func (e *env) width(pipe int) int {
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil {
		return min(max(w, 80), tableWidth)
	}
	if f, ok := e.stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			return min(max(w, 80), tableWidth)
		}
	}
	return pipe
}
