package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages for all commands",
		Long: "Writes memorymark.1, memorymark-analyze.1 and so on, one page per command, to a folder,\n" +
			"which is created if necessary. They have the same text as --help.",
		Example: "  memorymark man ~/.local/share/man/man1\n" +
			"  memorymark man man && man man/memorymark-analyze.1",
		Args: exactArgs("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			pages, err := writePages(c.Root(), args[0])
			if err != nil {
				return err
			}
			return e.print(map[string]any{"pages": pages}, func(w io.Writer, _ int) error {
				_, err := fmt.Fprintf(w, "%d pages in %s\n", len(pages), args[0])
				return err
			})
		},
	}
}

// writePages writes the page of a command and of those below it and returns
// their files.
func writePages(c *cobra.Command, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write manual pages: %w", err)
	}
	file := filepath.Join(dir, pageName(c)+".1")
	if err := os.WriteFile(file, []byte(manPage(c)), 0o644); err != nil {
		return nil, fmt.Errorf("write manual pages: %w", err)
	}
	files := []string{file}
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		more, err := writePages(sub, dir)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is a command's help in the language of man. It has no date, so that
// the same program always has the same pages.
func manPage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"MemoryMark\"\n", strings.ToUpper(pageName(c)), "memorymark "+currentVersion().Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(c.Short))
	b.WriteString(".SH SYNOPSIS\n")
	if alone := c.Annotations["alone"]; alone != "" {
		fmt.Fprintf(&b, ".B %s\n.br\n", roff(alone))
	}
	use := c.UseLine()
	if c.HasAvailableSubCommands() {
		use = c.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, ".B %s\n", roff(use))
	b.WriteString(".SH DESCRIPTION\n" + roffText(cmp.Or(c.Long, c.Short)))
	b.WriteString(".SH EXAMPLES\n" + roffText(c.Example))
	roffFlags(&b, "OPTIONS", c.NonInheritedFlags())
	roffFlags(&b, "OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	b.WriteString(".SH EXIT STATUS\n")
	for _, code := range exitCodes {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s\n", code.code, roff(code.meaning))
	}
	if related := relatedPages(c); len(related) > 0 {
		b.WriteString(".SH SEE ALSO\n" + strings.Join(related, ",\n") + "\n")
	}
	return b.String()
}

// roff writes text so that man takes none of it for a request or an escape, and
// reads it in whatever encoding.
func roff(s string) string {
	var b strings.Builder
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		b.WriteString(`\&`)
	}
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// roffText writes paragraphs; lines that are indented stay as they are.
func roffText(text string) string {
	var b strings.Builder
	verbatim := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !verbatim:
			b.WriteString(".PP\n.RS\n.nf\n")
		case !indented && verbatim:
			b.WriteString(".fi\n.RE\n")
		}
		verbatim = indented
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
	}
	if verbatim {
		b.WriteString(".fi\n.RE\n")
	}
	return b.String()
}

func roffFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n.B ")
		if f.Shorthand != "" {
			b.WriteString(roff("-"+f.Shorthand) + ", ")
		}
		b.WriteString(roff("--" + f.Name))
		if name != "" {
			b.WriteString(" \\fI" + roff(name) + "\\fR")
		}
		b.WriteString("\n" + roff(usage) + "\n")
	})
}

// relatedPages are the page above a command and those below it.
func relatedPages(c *cobra.Command) []string {
	var out []string
	if c.HasParent() {
		out = append(out, roff(pageName(c.Parent()))+"(1)")
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			out = append(out, roff(pageName(sub))+"(1)")
		}
	}
	return out
}
