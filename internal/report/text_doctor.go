package report

import (
	"fmt"
	"image/color"
	"io"
)

// Doctor is what was found on this machine and what is missing.
type Doctor struct {
	Checks []Check `json:"checks"`
	// Differences are what other versions are known to allocate differently
	// from the predicted ones.
	Differences []string `json:"differences,omitempty"`
}

// Check is one requirement that was checked.
type Check struct {
	Name  string `json:"name"`
	Found string `json:"found,omitempty"`
	OK    bool   `json:"ok"`
	Fix   string `json:"fix,omitempty"` // the command that fixes it
}

// OK reports whether nothing is missing.
func (d *Doctor) OK() bool {
	for _, c := range d.Checks {
		if !c.OK {
			return false
		}
	}
	return true
}

// Write writes the findings for people.
func (d *Doctor) Write(w io.Writer, width int) error {
	t := table{columns: []column{{title: ""}, {title: "LOOKED FOR"}, {title: "FOUND", stretch: true}}}
	for _, c := range d.Checks {
		r := row{cells: []string{"ok", c.Name, c.Found}}
		if !c.OK {
			r.cells[0] = "--"
			r.color = color.RGBA{0xff, 0xb0, 0x40, 0xff}
			if c.Fix != "" {
				r.below = []string{"to fix it: " + c.Fix}
			}
		}
		t.rows = append(t.rows, r)
	}
	t.write(w, width)
	fmt.Fprintln(w)
	if d.OK() {
		fmt.Fprintln(w, "Everything is there to measure real training steps.")
	} else {
		fmt.Fprintln(w, "Predicting needs none of this: predict, analyze and snapshot work as they are.")
	}
	if len(d.Differences) > 0 {
		fmt.Fprintf(w, "\n%s\n", heading("Predictions are of other versions, which are known to differ"))
		for _, x := range d.Differences {
			fmt.Fprintln(w, "  "+x)
		}
	}
	return nil
}
