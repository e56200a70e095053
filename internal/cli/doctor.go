package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"memorymark/internal/bytesize"
	"memorymark/internal/emulate"
	"memorymark/internal/measure"
	"memorymark/internal/predict"
	"memorymark/internal/report"
)

func newDoctor(e *env) *cobra.Command {
	var python string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine's GPU, Python and PyTorch, and say how to fix problems",
		Long: "Looks for a GPU, Python, PyTorch and transformers, and prints the exact command that\n" +
			"fixes each problem. Also names known differences in memory between the versions found and\n" +
			"the ones that are predicted.\n\n" +
			"Python is --python, $MEMORYMARK_PYTHON, the active virtual environment, or python3.\n\n" +
			"The exit code is 1 if something is missing.",
		Example: "  memorymark doctor\n" +
			"  memorymark doctor --python ~/venv/bin/python",
		Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			d := diagnose(c.Context(), python)
			if err := c.Context().Err(); err != nil {
				return err // what was found by then is not what there is
			}
			if err := e.print(d, d.Write); err != nil {
				return err
			}
			if !d.OK() {
				return errNo
			}
			return nil
		},
	}
	c.Flags().StringVar(&python, "python", "", "the `Python` to check")
	return c
}

func diagnose(ctx context.Context, named string) *report.Doctor {
	d := &report.Doctor{}
	driver := report.Check{Name: "NVIDIA driver", Fix: "install the driver of the card, then run nvidia-smi"}
	if card, ok := measure.ThisCard(ctx); ok {
		driver.OK, driver.Found, driver.Fix = true, card.Name, ""
	}
	d.Checks = append(d.Checks, driver)
	p, err := measure.FindPython(named, os.Getenv)
	if err != nil {
		d.Checks = append(d.Checks, report.Check{Name: "Python", Found: err.Error(), Fix: "install Python 3.10 or later, or give --python"})
		return d
	}
	found, err := measure.Inspect(ctx, p)
	if err != nil {
		d.Checks = append(d.Checks, report.Check{Name: "Python", Found: err.Error(), Fix: "give another one with --python"})
		return d
	}
	d.Checks = append(d.Checks,
		report.Check{Name: "Python", Found: fmt.Sprintf("%s, %s (%s)", found.Python, p.Path, p.From), OK: true},
		packageCheck("PyTorch", found.Torch, found.TorchError, measure.OldestTorch, p.Path+" -m pip install torch"),
		packageCheck("transformers", found.Transformers, found.TransformersError, measure.OldestTransformers, p.Path+" -m pip install transformers"))
	if found.Torch != "" {
		d.Checks = append(d.Checks, deviceCheck(found, p.Path), emulationCheck(ctx, found, p.Path))
	}
	d.Differences = measure.Differences(found.Torch, found.Transformers)
	return d
}

// packageCheck says whether a package is there and new enough.
func packageCheck(name, version, failure, oldest, install string) report.Check {
	switch {
	case version == "":
		return report.Check{Name: name, Found: failure, Fix: install}
	case measure.Older(version, oldest):
		return report.Check{Name: name, Found: fmt.Sprintf("%s; %s or later is needed", version, oldest), Fix: install + " --upgrade"}
	default:
		return report.Check{Name: name, Found: version, OK: true}
	}
}

// deviceCheck says what PyTorch can train on.
func deviceCheck(found *measure.Environment, python string) report.Check {
	c := report.Check{Name: "device"}
	switch {
	case len(found.Cards) > 0:
		card := found.Cards[0]
		c.OK = true
		c.Found = fmt.Sprintf("%s, %v free of %v, CUDA %s", card.Name, bytesize.Bytes(card.Free), bytesize.Bytes(card.Memory), found.CUDA)
	case found.MPS:
		c.OK, c.Found = true, "Apple GPU (mps)"
	case found.CUDA == "":
		c.Found, c.Fix = "this PyTorch was built without CUDA", python+" -m pip install --force-reinstall torch=="+predict.PyTorchVersion+".*"
	default:
		c.Found, c.Fix = found.CUDAError, "run nvidia-smi: the driver must be there and new enough for CUDA "+found.CUDA
	}
	return c
}

// emulationCheck says whether memorymark run works.
func emulationCheck(ctx context.Context, found *measure.Environment, python string) report.Check {
	c := report.Check{Name: "emulated GPU"}
	_, err := emulate.Install(ctx)
	var compiler *emulate.CompilerError
	switch {
	case err == nil && found.CUDA == "":
		c.Found, c.Fix = "this PyTorch was built without CUDA", python+" -m pip install --force-reinstall torch"
	case err == nil:
		c.OK, c.Found = true, tried(found.Torch)
	case errors.As(err, &compiler):
		c.Found, c.Fix = err.Error(), compiler.Fix()
	default:
		c.Found = err.Error()
	}
	return c
}

// tried says what is known of emulation with a version of PyTorch.
func tried(torch string) string {
	all := emulate.TestedVersions()
	first, last := emulate.Minor(all[0].Torch), emulate.Minor(all[len(all)-1].Torch)
	switch t, ok := emulate.FindTested(torch); {
	case !ok:
		return fmt.Sprintf("memorymark run has been tested with PyTorch %s to %s, not with %s", first, last, emulate.Minor(torch))
	case t.OK():
		return fmt.Sprintf("memorymark run works: all %d programs ran with PyTorch %s", t.Programs(), t.Torch)
	default:
		return fmt.Sprintf("memorymark run: %d of %d programs ran with PyTorch %s; these failed: %s", len(t.Answered), t.Programs(), t.Torch, strings.Join(t.Failed, ", "))
	}
}
