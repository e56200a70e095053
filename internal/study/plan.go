package study

import (
	"fmt"
	"slices"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Plan is the whole study of some models: forward and training at several
// contexts in fp32, and at the longest of them in mixed precision too.
type Plan struct {
	Models   []string // ids of the catalog
	Contexts []int64
	Batch    int64
	Mixed    workload.Precision // of the comparison
	Card     *gpu.Card
	GPU      string // the card by name, "" if none was asked for
	Device   string
	Warmup   int
	Steps    int
}

// planTypes are the parts of a step that a study looks at.
var planTypes = []workload.Phase{workload.Forward, workload.Train}

// Cells lists the cells of the plan, model by model.
func (p *Plan) Cells() ([]Cell, error) {
	var out []Cell
	for _, model := range p.Models {
		for _, context := range p.Contexts {
			for _, phase := range planTypes {
				precisions := []workload.Precision{workload.FP32}
				if context == p.Longest() {
					precisions = append(precisions, p.Mixed)
				}
				for _, precision := range precisions {
					c, err := p.cell(model, context, phase, precision)
					if err != nil {
						return nil, err
					}
					out = append(out, c)
				}
			}
		}
	}
	return out, nil
}

// Longest is the context at which precisions are compared.
func (p *Plan) Longest() int64 { return slices.Max(p.Contexts) }

func (p *Plan) cell(model string, context int64, phase workload.Phase, precision workload.Precision) (Cell, error) {
	d := workload.Draft{}
	d.Set("model", model)
	d.Set("sequence", fmt.Sprint(context))
	d.Set("batch", fmt.Sprint(p.Batch))
	d.Set("phase", string(phase))
	d.Set("precision", string(precision))
	if p.GPU != "" {
		d.Set("gpu", p.GPU)
	}
	w, err := d.Workload()
	if err != nil {
		return Cell{}, err
	}
	return Cell{Name: CellName(w), Workload: w, Card: p.Card, Device: p.Device, Warmup: p.Warmup, Steps: p.Steps}, nil
}

// SnapshotFiles are the names of a cell's snapshot. At the longest context the
// one in fp32 has two: as one of the contexts, and as one of the precisions.
func (p *Plan) SnapshotFiles(c Cell) []string {
	names := []string{c.Name + snapshotSuffix}
	if c.Workload.Precision == workload.FP32 && c.Workload.Sequence == p.Longest() {
		names = append(names, c.Name+"_"+string(workload.FP32)+snapshotSuffix)
	}
	return names
}

const snapshotSuffix = "_snapshot.pickle"

// PictureFile is the name of the picture of a cell's timeline.
func PictureFile(c Cell) string { return c.Name + "_timeline.png" }

// The other files of a study's folder.
const (
	PeaksFile      = "peak_memory_summary.txt"
	MixedFile      = "mixed_precision_memory_summary.txt"
	ActivationFile = "activation_size_analysis.txt"
	LargestFile    = "largest_allocations.txt"
	IndexFile      = "index.html"
	JournalFile    = ".memorymark-study.jsonl" // what has been done
)
