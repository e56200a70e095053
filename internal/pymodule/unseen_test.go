package pymodule_test

import (
	"errors"
	"strings"
	"testing"

	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
	"memorymark/internal/pymodule"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
)

// TestUnseen compares models that are not written by hand with what PyTorch asked for on an
// emulated H200 (testdata/truth/families/record.py): building the model, and a forward
// and a backward pass.
func TestUnseen(t *testing.T) {
	l := library(t)
	for _, c := range tracetest.Lines[struct {
		ID       string
		Workload struct {
			Config               hfconfig.Config
			Precision, Attention string
			Batch, Sequence      int64
		}
		Requests []int64
	}](t, "testdata/unseen.jsonl.xz") {
		t.Run(c.ID, func(t *testing.T) {
			run := models.Run{DType: torch.Float32, Train: true, Versions: models.Reference, Eager: c.Workload.Attention == "eager"}
			if c.Workload.Precision == "bf16" {
				run.DType = torch.BFloat16
			}
			got, err := pass(l, &c.Workload.Config, run, c.Workload.Batch, c.Workload.Sequence)
			if err != nil {
				t.Fatal(err)
			}
			n := len(got.Requests())
			compared := trace.Compare(got, tracetest.Requests(c.Requests[:n]))
			if compared.Differ() || compared.Beyond != [2]int{} || len(compared.Reordered) > 0 {
				t.Errorf("request %d of %d differs; other orders from %v", compared.Before, n, compared.Reordered)
			}
		})
	}
}

// pass builds a model and runs a forward and a backward pass of it.
func pass(l *pymodule.Library, c *hfconfig.Config, run models.Run, batch, sequence int64) (tr *trace.Trace, err error) {
	defer func() {
		if r := recover(); r != nil {
			i, ok := r.(torch.Interruption)
			if !ok {
				panic(r)
			}
			err = i.Err
		}
	}()
	t := torch.New(torch.Device{SMs: h200.SMs, ThreadsPerSM: h200.ThreadsPerSM, Major: 9})
	t.Version = models.Reference.Torch
	m, err := l.New(t, c, run)
	if err != nil {
		return nil, err
	}
	ids := t.Input(torch.Int64, batch, sequence)
	labels := ids
	switch { // as record.py makes them
	case strings.HasSuffix(c.Architecture, "ForConditionalGeneration"):
		labels = t.Input(torch.Int64, batch, sequence)
	case strings.HasSuffix(c.Architecture, "ForSequenceClassification"):
		labels = t.Input(torch.Int64, batch)
	}
	out := m.Forward(t, &models.Batch{IDs: ids, Labels: labels})
	if out.Loss.Tensor() == nil {
		return nil, errors.New("the model returns no loss")
	}
	loss := t.Hold(out.Loss.Borrow())
	out.Drop(t) // as the recorded loop drops it before backward
	t.Backward(loss.Borrow())
	return t.Trace(), nil
}
