package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"memorymark/internal/nearest"
	"memorymark/internal/report"
)

// helpTemplate shows what a command is for and an example before the rest:
// most people who ask for help want a line to copy. Its verb is the width that
// flags may take, 0 for any.
const helpTemplate = `{{with or .Long .Short}}{{trim .}}

{{end}}{{if .HasExample}}Examples:
{{.Example}}

{{end}}Usage:
  {{with .Annotations.alone}}{{.}}
  {{end}}{{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{if .HasAvailableSubCommands}}
Commands:
{{- range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsagesWrapped %[1]d}}{{end}}{{if .HasAvailableInheritedFlags}}
Flags of every command:
{{.InheritedFlags.FlagUsagesWrapped %[1]d}}{{end}}{{with .Annotations.footer}}
{{.}}{{end}}`

// setHelp makes the help of all commands fit a terminal of that width. Where
// there is none, the width is 0 and lines stay as they were written.
func setHelp(root *cobra.Command, width int) {
	root.SetHelpTemplate(fmt.Sprintf(helpTemplate, width))
	if width == 0 {
		return
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Long = refill(c.Long, min(width, pipeWidth))
		help(c, args)
	})
}

// refill breaks paragraphs into lines of another width. Indented paragraphs are
// code and stay.
func refill(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") {
			paragraphs[i] = strings.Join(report.Fill(p, width), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func seeHelp(c *cobra.Command) string { return fmt.Sprintf("%s --help", c.CommandPath()) }

// badFlag is what a flag's error becomes. For one that does not exist, it names
// those that were probably meant.
func badFlag(c *cobra.Command, err error) error {
	hint := seeHelp(c)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		if near := nearest.To(unknown.GetSpecifiedName(), flagNames(c)); len(near) > 0 {
			hint = fmt.Sprintf("did you mean --%s? %s lists all flags", strings.Join(near, " or --"), hint)
		}
	}
	return badUsage(hint, "%w", err)
}

func flagNames(c *cobra.Command) []string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}
