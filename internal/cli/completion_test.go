package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What completion offers for a flag is what its help says it can be.
func TestChoicesAreInHelp(t *testing.T) {
	explained := make(map[string]bool)
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if choices := flagChoices[f.Name]; choices != nil && namesAll(f.Usage, choices) {
				explained[f.Name] = true
			}
			if f.Name == "format" && !namesAll(f.Usage, formats[c.Name()]) {
				t.Errorf("%s: the help of --format and its completion disagree", c.CommandPath())
			}
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(&env{}))
	for name, choices := range flagChoices {
		if !explained[name] {
			t.Errorf("no --%s explains all of %v", name, choices)
		}
	}
}

func namesAll(usage string, choices []string) bool {
	for _, choice := range choices {
		if !strings.Contains(usage, choice) {
			return false
		}
	}
	return len(choices) > 0
}
