package report

import (
	"fmt"
	"image/color"
	"io"

	"memorymark/internal/engine"
)

// BackwardCheck writes whether backward runs.
type BackwardCheck struct{ *engine.BackwardCheck }

// Write writes both peaks and their ratio.
func (c BackwardCheck) Write(w io.Writer, width int) error {
	writeVerdict(w, c.Check)
	t := table{columns: []column{{title: "STEP"}, {title: "PEAK", right: true}, {title: "STEPS RUN", right: true}}}
	t.rows = []row{
		{cells: []string{"forward, no_grad", size(c.Forward), fmt.Sprint(c.Steps)}},
		{cells: []string{"forward and backward", size(c.Backward), fmt.Sprint(c.Steps)}},
	}
	t.write(w, width)
	fmt.Fprintf(w, "\n%s  %.3g ×", heading("Ratio"), c.Ratio)
	if c.Predicted > 0 {
		fmt.Fprintf(w, ", predicted %.3g ×", c.Predicted)
	}
	fmt.Fprintln(w)
	return nil
}

// CompileCheck is the gain of compiling, for people.
type CompileCheck struct{ *engine.CompileCheck }

// Write writes both sides.
func (c CompileCheck) Write(w io.Writer, width int) error {
	writeVerdict(w, c.Check)
	t := table{columns: []column{
		{title: ""}, {title: "FIRST STEP", right: true}, {title: "STEADY STEP", right: true}, {title: "ALLOCATED", right: true}, {title: "RESERVED", right: true},
	}}
	for _, side := range []struct {
		name  string
		speed engine.Speed
	}{{"eager", c.Eager}, {"compiled", c.Compiled}} {
		s := side.speed
		t.rows = append(t.rows, row{cells: []string{
			side.name, fmt.Sprintf("%.2f s", s.FirstSeconds), fmt.Sprintf("%.1f ms", 1e3*s.SteadySeconds), known(s.Peak, size), known(s.Reserved, size),
		}})
	}
	t.write(w, width)
	if c.Eager.Peak == 0 {
		fmt.Fprintf(w, "\nMemory was not measured: on %s it is counted at every operator, and PyTorch compiles nothing meanwhile.\n", deviceText(c.Device.Name))
	}
	return nil
}

// verdictColors are those of a traffic light.
var verdictColors = map[engine.CheckOutcome]color.RGBA{
	engine.Pass: {0x00, 0xff, 0x88, 0xff},
	engine.Warn: {0xff, 0xb0, 0x40, 0xff},
	engine.Fail: {0xff, 0x55, 0x55, 0xff},
}

func writeVerdict(w io.Writer, c engine.Check) {
	fmt.Fprintf(w, "%s  %s\n", heading(colored(verdictColors[c.Verdict], string(c.Verdict))), c.Why)
	fmt.Fprintf(w, "%s, batch %d, %s on %s with PyTorch %s.\n\n", c.Model, c.Batch, c.Engine, deviceText(c.Device.Name), c.With.Torch)
}
