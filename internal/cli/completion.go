package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"memorymark/internal/evidence"
	"memorymark/internal/gpu"
	"memorymark/internal/recording"
	"memorymark/internal/study"
	"memorymark/internal/token"
	"memorymark/internal/workload"
)

// shells are those that can be taught to complete a command line.
var shells = map[string]func(root *cobra.Command) error{
	"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(root.OutOrStdout(), true) },
	"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(root.OutOrStdout()) },
	"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(root.OutOrStdout(), true) },
	"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(root.OutOrStdout()) },
}

func newCompletion() *cobra.Command {
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Generate a shell completion script",
		Long: "Prints a completion script for bash, zsh, fish or powershell. It completes commands,\n" +
			"flags, ids of models and GPUs, and the values of flags.",
		Example: "  memorymark completion bash > /etc/bash_completion.d/memorymark\n" +
			"  memorymark completion zsh > ~/.zfunc/_memorymark\n" +
			"  memorymark completion fish > ~/.config/fish/completions/memorymark.fish",
		Args:      exactArgs("SHELL"),
		ValidArgs: names,
		RunE: func(c *cobra.Command, args []string) error {
			write, ok := shells[args[0]]
			if !ok {
				return badUsage("", "SHELL is %q; it must be one of %s", args[0], strings.Join(names, ", "))
			}
			return write(c.Root())
		},
	}
}

func engineNames() []string {
	var out []string
	for _, e := range evidence.Choices {
		out = append(out, string(e))
	}
	return out
}

// flagChoices are the values of flags that are not keys of a workload. Help lists
// the same values; a test compares the two.
var flagChoices = map[string][]string{
	"at":           {"peak", "end", "oom"},
	"by":           {recording.ByLine, recording.ByStack, recording.BySize, recording.ByCategory},
	"device":       {"cuda", "mps", "cpu", "auto"},
	"dtype":        {"bf16", "fp16"},
	"engine":       engineNames(),
	"log-level":    {"debug", "info", "warn", "error"},
	"model-size":   study.Sizes,
	"profile-type": {"forward", "backward", "training", "inference"},
	"role":         {string(token.User), string(token.Worker)},
}

// formats are the only flag that can be different things for two commands.
var formats = map[string][]string{
	"timeline": {"svg", "png", "html"},
	"sweep":    {"text", "markdown", "csv", "json", "svg", "png"},
	"check":    {"text", "markdown"},
}

// choicesOf returns what a flag of a command can be, nil if that is open.
func choicesOf(c *cobra.Command, f *pflag.Flag) []string {
	switch {
	case f.Value.Type() == "int": // snapshots number their devices
		return nil
	case f.Name == "format":
		return formats[c.Name()]
	case f.Name == "gpu":
		return cardIDs()
	case f.Name == "model":
		return modelIDs()
	}
	if values := flagChoices[f.Name]; values != nil {
		return values
	}
	return workload.Choices(strings.ReplaceAll(f.Name, "-", "_"))
}

// addCompletions has every command below this one complete its values.
func addCompletions(c *cobra.Command) {
	if strings.Contains(c.Use, "MODEL") {
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return modelIDs(), cobra.ShellCompDirectiveDefault // a path to a config.json is a model too
		}
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if values := choicesOf(c, f); values != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				if f.Name == "gpu" { // a path to a card.json is a card too
					return afterCommas(values, typed), cobra.ShellCompDirectiveDefault
				}
				return afterCommas(values, typed), cobra.ShellCompDirectiveNoFileComp
			})
		}
	})
	for _, sub := range c.Commands() {
		addCompletions(sub)
	}
}

// unquoteHelp takes the quotes out of the help of flags. They mark the word that
// stands for a value; shells would show them.
func unquoteHelp(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	for _, sub := range c.Commands() {
		unquoteHelp(sub)
	}
}

// afterCommas completes the last value of a list: a grid has several.
func afterCommas(values []string, typed string) []string {
	comma := strings.LastIndexByte(typed, ',')
	if comma < 0 {
		return values
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = typed[:comma+1] + v
	}
	return out
}

// modelIDs and cardIDs are the catalogs as shells show them: what is typed, a
// tab, what it is.
func modelIDs() []string {
	var out []string
	for _, m := range workload.Models() {
		out = append(out, m.ID+"\t"+m.Name)
	}
	return out
}

func cardIDs() []string {
	var out []string
	for _, card := range gpu.All() {
		out = append(out, card.ID+"\t"+card.Name)
	}
	return out
}
