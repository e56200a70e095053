package predict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"memorymark/internal/testmachine"
)

// engineLine is a process that ran on the H200 and again on the emulated one
// (testdata/truth/engines.jsonl): peaks of its last step.
type engineLine struct {
	Set       string
	ID        string
	Measured  enginePeak
	Emulated  *enginePeak // nil if there was no answer
	Predicted *enginePeak
	Cause     string // of what is not exact
}

type enginePeak struct {
	Allocated int64
	Reserved  int64
}

func (p enginePeak) off(measured enginePeak) (allocated, reserved float64) {
	share := func(have, want int64) float64 { return float64(have)/float64(want) - 1 }
	return share(p.Allocated, measured.Allocated), share(p.Reserved, measured.Reserved)
}

// The sets, in the order of the table.
var engineSets = []struct{ name, title string }{
	{"plain", "a plain loop on a model of the catalog"},
	{"own", "user-written models"},
	{"trainers", "Hugging Face's Trainer, Lightning, Accelerate's loop"},
	{"gpus", "one rank of many GPUs"},
	{"deepspeed", "one rank of DeepSpeed: ZeRO-1, 2 and 3"},
}

func engineLines(t *testing.T) []engineLine {
	t.Helper()
	data := testmachine.ReadFile(t, truthDir+"/engines.jsonl")
	var out []engineLine
	for line := range bytes.Lines(data) {
		var x engineLine
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

const docEngines = `
## The three engines side by side

*Predicted* needs no PyTorch. *Emulated* runs your PyTorch on an emulated card. *Measured* runs it on a real card; two such runs give the
same bytes, and the other engines are compared with it. The table shows peaks of the third step on an H200:

| | engine | answered | allocated: exact | 95 % within | from | to | reserved: exact | 95 % within |
|---|---|--:|--:|--:|--:|--:|--:|--:|
`

const docEmulatedReasons = `
These emulated processes are not exact. *Host* means that a real process has host memory mapped between the driver's regions, mostly what a
model leaves on the CPU when it moves to the GPU. So it takes the other of two free blocks of the same size
([ties](#what-is-not-exact-and-why)). Emulated addresses are the same in every run.

| process | allocated | reserved | cause |
|---|--:|--:|---|
`

const docEnginesRun = `
For the emulated rows, the measured program ran unchanged in ` + "`memorymark run --gpu h200 -- python measure.py …`" + ` on two cores
without a GPU. The plain loop covers all of ` + "`peaks.jsonl`" + ` and ` + "`peaks-random.jsonl`" + `. ` + "`testdata/truth/engines.jsonl`" + ` has every process.
User-written models cannot be predicted.

The 40 processes of ` + "`recorded.jsonl`" + `, small models of every family with every option, ran the same way, and all were answered. For 37 of them, the allocated
peaks and what is left after each of the two steps are exact; for 39, reserved memory is. The other four (` + "`llama_3l_b4_s256`" + ` in fp32 −0.10 %, and in
amp-bf16 2 MiB of reserved memory in the first step only, ` + "`mistral_3l_b2_s512_bf16`" + ` +0.08 %, ` + "`vit_3l_b8_i224_amp-bf16`" + ` −0.12 %) request the same bytes in the
same order as their recordings, so these are ties.

The two engines are also compared with each other, allocation by allocation and free by free: for every family on an H200 and an RTX 4090, and for
families with convolutions on four other cards (` + "`TestEnginesAgree`" + `). One difference is known: ResNet under autocast in bf16 on an H200. There cuDNN
passes 1 × 1 convolutions to cuBLASLt, and about half of its plans for an emulated device lack 512 bytes of workspace that the real card used.
The predicted engine includes them.
`

// writeEngines compares the engines.
func (f *figures) writeEngines(b *bytes.Buffer) {
	b.WriteString(docEngines)
	for _, set := range engineSets {
		f.writeEngine(b, set.name, set.title, "predicted", func(x *engineLine) *enginePeak { return x.Predicted })
		f.writeEngine(b, set.name, set.title, "emulated", func(x *engineLine) *enginePeak { return x.Emulated })
	}
	b.WriteString(docEnginesRun + docEmulatedReasons)
	for _, x := range f.engines {
		if x.Emulated == nil {
			fmt.Fprintf(b, "| `%s` | no answer | | %s |\n", x.ID, x.Cause)
			continue
		}
		allocated, reserved := x.Emulated.off(x.Measured)
		if allocated != 0 || reserved != 0 {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", x.ID, signedPercent(awayFromZero(allocated)), signedPercent(awayFromZero(reserved)), x.Cause)
		}
	}
}

// engineErrors are those of the peaks that an engine answered, and how many of the set it was asked.
func (f *figures) engineErrors(set string, of func(*engineLine) *enginePeak) (allocated, reserved lineErrors, asked int) {
	for i := range f.engines {
		x := &f.engines[i]
		if x.Set != set {
			continue
		}
		asked++
		if answer := of(x); answer != nil {
			a, r := answer.off(x.Measured)
			allocated, reserved = append(allocated, lineError{id: x.ID, share: a}), append(reserved, lineError{id: x.ID, share: r})
		}
	}
	return allocated, reserved, asked
}

func (f *figures) writeEngine(b *bytes.Buffer, set, title, engine string, of func(*engineLine) *enginePeak) {
	allocated, reserved, asked := f.engineErrors(set, of)
	if len(allocated) == 0 {
		return
	}
	a, r := allocated.sum(), reserved.sum()
	fmt.Fprintf(b, "| %s | %s | %d of %d | %d | %s | %s | %s | %d | %s |\n", title, engine, a.Cases, asked, a.Exact, percent(a.Percentile95),
		signedPercent(a.Lowest), signedPercent(a.Highest), r.Exact, percent(r.Percentile95))
}
