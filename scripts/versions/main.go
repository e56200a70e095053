// Command versions tries the emulated GPU with every version of PyTorch that
// it is said to work with: each in a virtual environment of its own, which is
// removed afterwards (6 GB and 5 minutes each). It looks whether PyTorch's
// libraries ask for an entry point that the emulated GPU does not have, runs
// programs.py on it, prints a table, and writes it to internal/emulate/tested.json,
// which memorymark doctor and the documents speak from.
//
//	go run ./scripts/versions -memorymark build/memorymark -only 2.6,2.8
//	go run ./scripts/versions -memorymark build/memorymark -with ~/venv/bin/python
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"memorymark/internal/emulate"
)

// pair is a version of PyTorch and one of transformers from its time.
type pair struct{ torch, transformers string }

// pairs are the versions to try. A new PyTorch is a new row.
var pairs = []pair{
	{"2.4.1", "4.46.3"},
	{"2.5.1", "4.48.3"},
	{"2.6.0", "4.51.3"},
	{"2.7.1", "4.53.3"},
	{"2.8.0", "4.57.6"},
	{"2.9.1", "4.57.6"},
	{"2.10.0", "5.2.0"},
	{"2.11.0", "5.17.0"},
	{"2.12.1", "5.18.0"},
	{"2.13.0", "5.19.0"},
	{"2.14.1", "5.21.1"},
	{"2.15.0", "5.22.2"},
}

// trial is one call of this command.
type trial struct {
	memorymark string // the binary
	python     string // that environments are made with
	library    string // the emulated GPU's
	programs   string // programs.py
	record     string // the file with results
	work       string // a folder for what is made on the way
}

func main() {
	var t trial
	only := flag.String("only", "", "the versions of PyTorch to try, as 2.6,2.8 (default: all)")
	with := flag.String("with", "", "a Python that has PyTorch and transformers, to try instead of making environments")
	flag.StringVar(&t.record, "record", "internal/emulate/tested.json", "the file to record results in")
	flag.StringVar(&t.memorymark, "memorymark", "build/memorymark", "the binary to try")
	flag.StringVar(&t.python, "python", "python3", "the Python to make environments with")
	flag.StringVar(&t.programs, "programs", "scripts/versions/programs.py", "the programs to run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := t.run(ctx, *only, *with)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func (t *trial) run(ctx context.Context, only, with string) error {
	var err error
	if t.work, err = os.MkdirTemp("", "memorymark-versions-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(t.work) }()
	t.library = filepath.Join(t.work, "libcuda.so.1")
	if err := emulate.Build(ctx, "cc", t.library); err != nil {
		return err
	}
	if t.programs, err = filepath.Abs(t.programs); err != nil {
		return err
	}
	if with != "" {
		return t.try(ctx, with)
	}
	var failed error
	for _, p := range chosen(only) {
		failed = errors.Join(failed, t.tryPair(ctx, p))
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// chosen are the rows that -only names.
func chosen(only string) []pair {
	if only == "" {
		return pairs
	}
	wanted := strings.Split(only, ",")
	return slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool {
		return !slices.Contains(wanted, p.torch) && !slices.Contains(wanted, emulate.Minor(p.torch))
	})
}

// tryPair makes an environment, tries it and removes it.
func (t *trial) tryPair(ctx context.Context, p pair) error {
	folder := filepath.Join(t.work, "venv")
	defer func() { _ = os.RemoveAll(folder) }()
	python, err := makeEnvironment(ctx, t.python, folder, p)
	if err != nil {
		return fmt.Errorf("PyTorch %s: %w", p.torch, err)
	}
	return t.try(ctx, python)
}

// try tries one environment and says what came of it.
func (t *trial) try(ctx context.Context, python string) error {
	began := time.Now()
	e, err := inspect(ctx, python)
	if err != nil {
		return err
	}
	missing, err := missingEntries(t.library, e.Folder)
	if err != nil {
		return err
	}
	tested := emulate.Tested{Torch: e.Torch, CUDA: e.CUDA, CuDNN: e.CuDNN, Transformers: e.Transformers, Missing: missing}
	results, processes, err := t.tryPrograms(ctx, python)
	if err != nil {
		return fmt.Errorf("PyTorch %s: %w", e.Torch, err)
	}
	for _, p := range programs {
		if err := results[p.name]; err != nil {
			fmt.Printf("PyTorch %s: %s: %v\n", e.Torch, p.name, err)
			tested.Failed = append(tested.Failed, p.name)
			continue
		}
		peak := processes[p.name].Peak()
		tested.Answered = append(tested.Answered, emulate.Answer{Program: p.name, Allocated: peak.Allocated, Reserved: peak.Reserved})
	}
	fmt.Printf("PyTorch %s, CUDA %s, cuDNN %s, transformers %s: %d of %d programs answered, %d entry points missing, %.0f s\n", e.Torch, e.CUDA, e.CuDNN, e.Transformers,
		len(tested.Answered), tested.Programs(), len(missing), time.Since(began).Seconds())
	if err := record(t.record, tested); err != nil {
		return err
	}
	if len(tested.Failed)+len(missing) > 0 {
		return fmt.Errorf("PyTorch %s: %d programs failed, %d entry points are missing: %s", e.Torch, len(tested.Failed), len(missing), strings.Join(missing, ", "))
	}
	return nil
}
