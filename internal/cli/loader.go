package cli

import (
	"math"

	"github.com/spf13/pflag"
)

// loaderFlag says how long the loader takes, which nothing else tells.
type loaderFlag struct{ seconds float64 }

func (l *loaderFlag) add(flags *pflag.FlagSet) {
	flags.Float64Var(&l.seconds, "loader-seconds", 0, "the `seconds` that the data loader of a GPU takes for a sample, with all of its workers; a step takes no less")
}

func (l *loaderFlag) check() error {
	if l.seconds < 0 || math.IsNaN(l.seconds) || math.IsInf(l.seconds, 0) {
		return badUsage("time the loader alone, and divide by the samples that it gave", "--loader-seconds is %g; it must be a number of seconds for a sample, such as 0.002", l.seconds)
	}
	return nil
}
