package cli

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// logFlags say what a command that runs for long writes to its log.
type logFlags struct {
	json  bool
	level string
}

func (f *logFlags) addLog(flags *pflag.FlagSet) {
	flags.BoolVar(&f.json, "log-json", false, "write the log as JSON")
	flags.StringVar(&f.level, "log-level", "info", "log `level`: debug, info, warn or error")
}

func (f *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return nil, badUsage("it can be debug, info, warn or error", "--log-level: %q is not a level", f.level)
	}
	opts := &slog.HandlerOptions{Level: level}
	if f.json {
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return slog.New(slog.NewTextHandler(w, opts)), nil
}
