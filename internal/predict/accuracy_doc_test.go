package predict

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// document writes docs/accuracy.md.
func (f *figures) document() []byte {
	var b bytes.Buffer
	b.WriteString(docOpening)
	f.writeLimits(&b)
	f.writeSummary(&b)
	f.writeEngines(&b)
	f.writeCards(&b)
	f.writePeaks(&b)
	f.writeLargest(&b)
	f.writeEvents(&b)
	f.writeTime(&b)
	f.writeInexact(&b)
	b.WriteString(docClosing)
	return b.Bytes()
}

const docOpening = `# How far predictions are off

<!-- Written by make accuracy from testdata/truth; a test fails when it is out of date. -->

Every figure here comes from running the predictions again and holding them against what real training steps did on a real
GPU. The binary carries the same figures by architecture (` + "`internal/predict/accuracy.json`" + `) and states them beside its predictions.
Errors are shares of what was measured: + is predicted too high. A workload is exact if all its steps are, to the byte.
`

// writeLimits says what the figures do not cover, before any of them.
func (f *figures) writeLimits(b *bytes.Buffer) {
	held := f.heldReserved.sum()
	fmt.Fprintf(b, `
## What was not measured

* **Other cards.** Everything was measured on one NVIDIA H200; smaller cards are that one with its allocator capped. What differs
  elsewhere is modelled from PyTorch's source: workspaces, the number of blocks a kernel takes, the attention kernel chosen.
* **Other versions.** PyTorch %s and transformers %s were measured, and no others. Where a family is predicted for others, it is held
  to an emulated H200, event by event ([how-prediction-works.md](how-prediction-works.md#versions)).
* **Larger models.** The table has the largest model of each architecture. An answer about a larger one says so.
* **Speed of most models.** Steps of %d architectures were timed. The time model is off by up to %s there.
* **Reserved memory by chance.** Allocated memory is nearly always exact. Reserved memory depends on where the driver puts
  segments: of %d workloads held out, the farthest are %s and %s off.

| architecture | largest model: peaks | largest batches | step times |
|---|--:|--:|--:|
`, PyTorchVersion, TransformersVersion, f.timed(), percent(max(f.time.sum().Worst, f.studiedTime.sum().Worst)), held.Cases, signedPercent(held.Lowest), signedPercent(held.Highest))
	for _, name := range slices.Sorted(maps.Keys(f.byArchitecture)) {
		a := f.byArchitecture[name]
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, largestModel(&a.Allocated), largestModel(a.LargestBatch), largestModel(a.StepTime))
	}
}

// timed is of how many architectures steps were timed.
func (f *figures) timed() int {
	n := 0
	for _, a := range f.byArchitecture {
		if a.StepTime != nil {
			n++
		}
	}
	return n
}

func largestModel(e *Errors) string {
	if e == nil {
		return "none"
	}
	return strings.TrimSuffix(parametersText(e.MostParameters), " parameters")
}

const docOthers = `
What PyTorch's own tracker reaches on some of the same workloads is in [benchmarks.md](benchmarks.md).
`

func (f *figures) writeSummary(b *bytes.Buffer) {
	b.WriteString("\n## In short\n\n| what | measured | exact | median | 95 % within | from | to |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, line := range []struct {
		what string
		e    lineErrors
	}{{"peak allocated", f.allocated}, {"peak reserved", f.reserved}, {"peak allocated, held out", f.heldAllocated}, {"peak reserved, held out", f.heldReserved}, {"peak allocated, memory study", f.studied.allocated}, {"peak reserved, memory study", f.studied.reserved}, {"largest batch", f.largest}, {"step time", f.time}, {"step time, memory study", f.studiedTime}} {
		e := line.e.sum()
		fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s | %s |\n", line.what, e.Cases, e.Exact,
			percent(e.Median), percent(e.Percentile95), signedPercent(e.Lowest), signedPercent(e.Highest))
	}
	fmt.Fprintf(b, "| every allocation and free, in order | %d processes | %d | | | | |\n", f.recorded+f.requests, f.recordedExact+f.requestsExact)
	b.WriteString(docOthers)
}

func (f *figures) writePeaks(b *bytes.Buffer) {
	for _, part := range []struct {
		title string
		of    func(Accuracy) Errors
	}{
		{"Peak allocated memory", func(a Accuracy) Errors { return a.Allocated }},
		{"Peak reserved memory", func(a Accuracy) Errors { return a.Reserved }},
	} {
		fmt.Fprintf(b, "\n## %s\n\n", part.title)
		b.WriteString("| architecture | workloads | exact | within 1 % | median | 95 % within | from | to |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
		for _, name := range slices.Sorted(maps.Keys(f.byArchitecture)) {
			e := part.of(f.byArchitecture[name])
			fmt.Fprintf(b, "| %s | %d | %d | %d | %s | %s | %s | %s |\n", name, e.Cases, e.Exact, e.Within,
				percent(e.Median), percent(e.Percentile95), signedPercent(e.Lowest), signedPercent(e.Highest))
		}
	}
	b.WriteString("\n`peaks.jsonl` (chosen) and `peaks-random.jsonl` (drawn at random), three steps each, some two. A workload's error is that of the\nstep that is farthest off. `peaks-heldout.jsonl` was drawn at random and measured after the models were written, so nothing could\nhave been fitted to it; two of its workloads are more than 3 % off in reserved memory, with the allocated exact, and why is not settled.\nTransformerLM is the plain language model of the memory study; its workloads were measured after the model was written, too, and\n[study.md](study.md) has them one by one.\n")
}

func (f *figures) writeLargest(b *bytes.Buffer) {
	e := f.largest.sum()
	above := 0
	for _, x := range f.largest {
		if x.share > 0 {
			above++
		}
	}
	fmt.Fprintf(b, "\n## Largest batch\n\nOn an H200 whose allocator was capped, the largest batch that survives three full steps in a fresh process\n"+
		"(`largest-batch.jsonl`): %d of %d exact, from %s to %s, %d above the truth.\n", e.Exact, e.Cases,
		signedPercent(e.Lowest), signedPercent(e.Highest), above)
	b.WriteString("\n| not exact | limit | predicted | measured | error |\n|---|--:|--:|--:|--:|\n")
	for i := range f.batches {
		if x := &f.batches[i]; x.off() != 0 {
			fmt.Fprintf(b, "| `%s` | %.1f GiB | %d | %d | %s |\n", x.ID, x.workload.LimitGiB, x.predicted.Largest, x.Measured.Largest,
				signedPercent(awayFromZero(x.off())))
		}
	}
	tried, wrong := 0, 0
	for _, x := range f.edges {
		tried, wrong = tried+len(x.Survived), wrong+len(x.wrong)
	}
	fmt.Fprintf(b, "\nFitting is not monotonic: some batches fail that are smaller than some that fit. Of %d batches tried on the GPU around\n"+
		"%d edges (`edges.jsonl`), the simulation is right about %d.\n", tried, len(f.edges), tried-wrong)
}

func (f *figures) writeEvents(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## Events\n\nEvery allocation and every free, of the same size and the same memory, in the same order, from before the model is built\n"+
		"to the end of the second step: %d of %d recorded processes (`recorded/`), and %d of %d of which the requests alone were kept\n"+
		"(`requests.jsonl.xz`). Where autocast drops its cached casts the order of frees is that of a hash map of addresses on the CPU,\n"+
		"so there they are compared as a set. `memorymark snapshot compare` does the same for any two files.\n",
		f.recordedExact, f.recorded, f.requestsExact, f.requests)
}

func (f *figures) writeTime(b *bytes.Buffer) {
	if len(f.time) == 0 {
		return
	}
	b.WriteString("\n## Step time\n\n| architecture | steps | within 1 % | median | 95 % within | from | to |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, name := range slices.Sorted(maps.Keys(f.byArchitecture)) {
		if e := f.byArchitecture[name].StepTime; e != nil {
			fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s | %s |\n", name, e.Cases, e.Within,
				percent(e.Median), percent(e.Percentile95), signedPercent(e.Lowest), signedPercent(e.Highest))
		}
	}
	b.WriteString("\nThe constants of the time model were fitted to these steps (`throughput.jsonl`) but those of TransformerLM, so this is how well it\nfits, not how well it foresees: with one of the architectures held out, the median error on it is 9 to 12 %.\n")
}

const docReasons = `
* **Ties.** PyTorch takes the smallest free block that is large enough and, of equals, the one with the lowest address. Where
  the driver puts segments is modelled after what it was seen to do, and is closed; so of two free blocks of one size the simulation
  may take the other. What is left of it differs then, and a remainder of up to 1 MiB stays on the block and counts as allocated.
  Reserved memory, and with it the largest batch, can differ by whole segments.
* **Convolutions.** cuDNN chooses its algorithm, and so its workspace, by closed heuristics. MemoryMark has a table made of
  181,411 measured convolutions (` + "`operators/cudnn_convolutions.csv.xz`" + `) and lets the nearest ones vote on any other. A workspace that is off moves
  peaks of ResNet and of ViT, whose patches are a convolution.
`

// writeInexact lists what is not exact.
func (f *figures) writeInexact(b *bytes.Buffer) {
	b.WriteString("\n## What is not exact, and why\n\nTwo causes are known.\n" + docReasons)
	b.WriteString("\n| workload | allocated | reserved |\n|---|--:|--:|\n")
	for i, x := range f.allocated {
		if y := f.reserved[i]; x.share != 0 || y.share != 0 {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", x.id, signedPercent(awayFromZero(x.share)), signedPercent(awayFromZero(y.share)))
		}
	}
}

const docClosing = `
## How it was obtained

One NVIDIA H200 (139.8 GiB), driver 580, PyTorch 2.11.0+cu130 (cuDNN 9.19), transformers 5.17.0, Python 3.12; a fresh process
for each workload; amounts are the allocator's own statistics; largest batches under ` + "`set_per_process_memory_fraction`" + `. What was measured
is in ` + "`testdata/truth`" + `. Two runs of a workload give the same bytes. To run the predictions again and rewrite this page:

    make accuracy
`

// percent writes a share with the digits that matter: "0", "0.027 %", "12 %".
func percent(share float64) string {
	if share == 0 {
		return "0"
	}
	return fmt.Sprintf("%.2g %%", 100*share)
}

func signedPercent(share float64) string {
	if share == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.2g %%", 100*share)
}
