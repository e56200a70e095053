package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// addConfigFlag lets the flags of a command be given by a file and by the
// environment too: --listen is listen in the file's section of the command, and
// MEMORYMARK_LISTEN. A flag counts before the environment, and that before the
// file.
func addConfigFlag(c *cobra.Command) {
	c.Flags().String("config", "", "YAML `file` with the flags of each command in its own section (default: $MEMORYMARK_CONFIG)")
	c.PreRunE = func(c *cobra.Command, _ []string) error { return configure(c, os.LookupEnv) }
}

// configure fills in the flags that the command line left open.
func configure(c *cobra.Command, lookup func(string) (string, bool)) error {
	path, _ := c.Flags().GetString("config")
	if path == "" {
		path, _ = lookup(variable("config"))
	}
	var file map[string]any
	if path != "" {
		var err error
		if file, err = readSettings(path, c); err != nil {
			return err
		}
	}
	var wrong error
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || wrong != nil || f.Name == "config" || f.Name == "help" {
			return
		}
		if text, ok := lookup(variable(f.Name)); ok {
			if err := c.Flags().Set(f.Name, text); err != nil {
				wrong = badUsage("", "$%s: %w", variable(f.Name), err)
			}
		} else if value, ok := file[settingName(f)]; ok {
			if err := setFlag(c, f, value); err != nil {
				wrong = badUsage("", "%s: %s: %w", path, settingName(f), err)
			}
		}
	})
	return wrong
}

func variable(flag string) string {
	return "MEMORYMARK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func settingName(f *pflag.Flag) string { return strings.ReplaceAll(f.Name, "-", "_") }

// readSettings reads the section of a command. A section or a key that no command
// reads is an error, since it would have no effect.
func readSettings(path string, c *cobra.Command) (map[string]any, error) {
	var file map[string]map[string]any
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, badInput("", "read settings %s: %w", path, err)
	}
	err = yaml.Unmarshal(data, &file)
	if types := new(yaml.TypeError); errors.As(err, &types) { // which names Go's types
		err = errors.New("it must have a section for each command, with its flags")
	}
	if err != nil {
		return nil, badInput(fmt.Sprintf("settings are YAML; memorymark %s --help has an example", c.Name()), "read settings %s: %w", path, err)
	}
	for section := range file {
		known := slices.ContainsFunc(c.Root().Commands(), func(other *cobra.Command) bool {
			return other.Name() == section && other.Flags().Lookup("config") != nil
		})
		if !known {
			return nil, badInput("", "read settings %s: %s is not a command that has settings", path, section)
		}
	}
	var known []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && f.Name != "help" {
			known = append(known, settingName(f))
		}
	})
	for key := range file[c.Name()] {
		if !slices.Contains(known, key) {
			return nil, badInput("the settings are "+strings.Join(known, ", "), "read settings %s: %q is not a setting of %s", path, key, c.Name())
		}
	}
	return file[c.Name()], nil
}

// setFlag gives a flag a value of a file.
func setFlag(c *cobra.Command, f *pflag.Flag, value any) error {
	list, ok := value.([]any)
	if !ok {
		return c.Flags().Set(f.Name, fmt.Sprint(value))
	}
	many, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return fmt.Errorf("takes one value, not a list")
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	f.Changed = true
	return many.Replace(texts)
}
