// Command slurm refuses a batch script whose training cannot fit the GPUs that
// it asks for. The script says what it trains in a comment, and Slurm's own
// directives say on what:
//
//	#SBATCH --gres=gpu:a100-80gb:4
//	#MEMORYMARK {"model": "llama-3.1-8b", "batch": 2, "parallel": {"kind": "fsdp", "gpus": 4}}
//
// A script without either is let through. The file sbatch next to it puts it in
// front of Slurm's sbatch. It exits with 1 for a job that cannot fit, after it
// has said what would help.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"memorymark"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: slurm SCRIPT")
		os.Exit(2)
	}
	script, err := os.Open(os.Args[1])
	if err == nil {
		defer script.Close()
		err = check(context.Background(), script)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "memorymark:", err)
		os.Exit(1) //nolint:gocritic // the file was only read
	}
}

// check says why a script cannot run.
func check(ctx context.Context, script io.Reader) error {
	text, gpu, err := directives(script)
	if err != nil || text == "" || gpu == "" {
		return err
	}
	card, err := memorymark.FindCard(gpu)
	if err != nil {
		return nil //nolint:nilerr // a name of this cluster's own, of which nothing is known
	}
	workload, err := memorymark.ParseWorkload([]byte(text))
	if err != nil {
		return err
	}
	p, err := memorymark.Predict(workload, card)
	if err != nil || p.Fits {
		return err
	}
	return fmt.Errorf("the job cannot fit %s: it needs %v and PyTorch may hold %v; %s",
		card.Name, p.PeakReserved(), p.Limit, advice(ctx, text, card))
}

// advice names the fewest changes with which a job fits.
func advice(ctx context.Context, text string, card *memorymark.Card) string {
	d, err := memorymark.ParseDraft([]byte(text))
	if err != nil {
		return err.Error()
	}
	fit, err := memorymark.Fit(ctx, d, card)
	switch {
	case err != nil:
		return "ask for a larger GPU, or more of them"
	case len(fit.Options) == 0:
		return "no change makes it fit"
	default:
		var labels []string
		for _, c := range fit.Options[0].Changes {
			labels = append(labels, c.Label)
		}
		return "it would fit with " + strings.Join(labels, ", ")
	}
}

// directives are what a script trains and on which GPU, "" if it does not say.
func directives(script io.Reader) (workload, gpu string, err error) {
	lines := bufio.NewScanner(script)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if text, ok := strings.CutPrefix(line, "#MEMORYMARK "); ok {
			workload = text
		}
		if options, ok := strings.CutPrefix(line, "#SBATCH "); ok {
			for _, option := range strings.Fields(options) {
				for _, flag := range []string{"--gres=gpu:", "--gpus=", "--gpus-per-node="} {
					if value, ok := strings.CutPrefix(option, flag); ok {
						gpu, _, _ = strings.Cut(value, ":")
					}
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		return "", "", errors.New("the script has a line of more than a megabyte")
	}
	return workload, gpu, nil
}
