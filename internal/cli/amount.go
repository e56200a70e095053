package cli

import (
	"github.com/spf13/pflag"

	"memorymark/internal/bytesize"
	"memorymark/internal/figure"
)

// parseReserve reads --reserve; without it nothing is kept free.
func parseReserve(text string) (bytesize.Bytes, error) {
	if text == "" {
		return 0, nil
	}
	reserve, err := bytesize.Parse(text)
	if err != nil {
		return 0, badUsage("write it as --reserve 512MiB", "--reserve: %w", err)
	}
	return reserve, nil
}

// amountFlags say how much there is to train on.
type amountFlags struct{ tokens, samples string }

func (f *amountFlags) add(flags *pflag.FlagSet, tokens, samples string) {
	flags.StringVar(&f.tokens, "tokens", "", tokens)
	flags.StringVar(&f.samples, "samples", "", samples)
}

// read takes what the flags say; what was not given stays as it is.
func (f *amountFlags) read(tokens, samples *figure.Amount) (err error) {
	for _, number := range []struct {
		flag, text string
		into       *figure.Amount
	}{{"--tokens", f.tokens, tokens}, {"--samples", f.samples, samples}} {
		if number.text == "" {
			continue
		}
		if *number.into, err = figure.ParseAmount(number.text); err != nil {
			return badUsage("", "%s: %w", number.flag, err)
		}
	}
	if *tokens > 0 && *samples > 0 {
		return badUsage("give one of them", "--tokens and --samples both say how much there is to train on")
	}
	return nil
}
