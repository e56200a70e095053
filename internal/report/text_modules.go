package report

import (
	"fmt"
	"io"
	"strconv"

	"memorymark/internal/bytesize"
	"memorymark/internal/predict"
	"memorymark/internal/trace"
)

// shownModules is the number of lines of a breakdown by module.
const shownModules = 8

// writeModules lists the memory of a model's modules. Layers that hold the same
// are one line.
func writeModules(w io.Writer, width int, modules []predict.ModuleBytes, total bytesize.Bytes) {
	t := table{columns: []column{
		{title: "SIZE", right: true}, {title: "SHARE", right: true}, {title: "EACH", right: true}, {title: "MODULE"},
	}}
	groups := groupModules(modules)
	for i, g := range groups {
		if i == shownModules && len(groups) > shownModules+1 {
			t.rows = append(t.rows, restOfModules(groups[i:], total))
			break
		}
		each := ""
		if len(g.layers) > 1 {
			each = fmt.Sprintf("%d × %v", len(g.layers), g.each)
		}
		t.rows = append(t.rows, row{cells: []string{
			g.bytes().String(), percent(float64(g.bytes()) / float64(total)), each, g.String(),
		}})
	}
	t.write(w, width)
}

func restOfModules(groups []moduleGroup, total bytesize.Bytes) row {
	var sum bytesize.Bytes
	for _, g := range groups {
		sum += g.bytes()
	}
	return row{cells: []string{sum.String(), percent(float64(sum) / float64(total)), "", "the rest"}}
}

// moduleGroup is a module, or layers of one list that hold the same.
type moduleGroup struct {
	name   string // without the number of a layer
	layers []int  // none for a module that is not a layer
	each   bytesize.Bytes
}

func (g *moduleGroup) bytes() bytesize.Bytes { return g.each * bytesize.Bytes(max(len(g.layers), 1)) }

// String writes "h.3" for a layer and "h.0 to 11" for many.
func (g *moduleGroup) String() string {
	switch n := len(g.layers); n {
	case 0:
		return g.name
	case 1:
		return g.name + "." + strconv.Itoa(g.layers[0])
	default:
		if g.layers[n-1]-g.layers[0] == n-1 {
			return fmt.Sprintf("%s.%d to %d", g.name, g.layers[0], g.layers[n-1])
		}
		return fmt.Sprintf("%s, %d layers", g.name, n)
	}
}

func groupModules(modules []predict.ModuleBytes) []moduleGroup {
	var out []moduleGroup
	for _, m := range modules {
		list, layer, isLayer := trace.Layer(m.Module)
		last := len(out) - 1
		switch {
		case !isLayer:
			out = append(out, moduleGroup{name: m.Module, each: m.Bytes})
		case last >= 0 && out[last].name == list && out[last].each == m.Bytes && len(out[last].layers) > 0:
			out[last].layers = append(out[last].layers, layer)
		default:
			out = append(out, moduleGroup{name: list, layers: []int{layer}, each: m.Bytes})
		}
	}
	return out
}
