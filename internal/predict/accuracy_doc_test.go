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
	f.writeReported(&b)
	b.WriteString(docClosing)
	return b.Bytes()
}

const docOpening = `# Accuracy

<!-- Written by make accuracy from testdata/truth; a test fails when it is out of date. -->

Every figure here comes from running the predictions again and comparing them with real training steps on a real GPU. The binary
contains the same figures by architecture (` + "`internal/predict/accuracy.json`" + `) and prints them with its predictions. Errors are relative to
the measured value: + means that the prediction is too high. A workload is exact if all its steps are exact to the byte.
[accuracy.csv](accuracy.csv) has every comparison, with its source, card and versions.

![How many comparisons of each kind are exact, and how far off the others are](images/accuracy.svg)
`

// writeLimits says what the figures do not cover, before any of them.
func (f *figures) writeLimits(b *bytes.Buffer) {
	held := f.heldReserved.sum()
	fmt.Fprintf(b, `
## What was not measured

* **Other cards.** Everything was measured on one NVIDIA H200. For smaller cards, its allocator was capped. What differs on other
  cards is modelled from PyTorch's source: workspaces, the number of blocks of a kernel, the choice of the attention kernel.
* **Other versions.** Only PyTorch %s and transformers %s were measured. Predictions for other versions are compared with an
  emulated H200, event by event ([how-prediction-works.md](how-prediction-works.md#versions)).
* **Larger models.** The table lists the largest model of each architecture. An answer about a larger model says so.
* **The speed of most models.** Steps of %d architectures were timed. The time model is off by up to %s there.
* **Chance in reserved memory.** Allocated memory is nearly always exact. Reserved memory depends on where the driver places
  segments. Of %d held-out workloads, the worst are off by %s and %s.

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
	return strings.TrimSuffix(parametersText(e.MaxParameters), " parameters")
}

const docDrawn = `
"Any keys" are 957 workloads of ` + "`peaks-drawn.jsonl`" + `, drawn at random in November 2026 from all models of the catalog and every key: heads, loops,
precisions, optimizers, adapters, quantized weights, checkpointing and kinds of parallelism, in odd sizes. They were drawn in four parts, each
after the errors of the part before had been fixed. This is how each part was predicted when it was measured:

| part | workloads | allocated: exact | reserved: exact | allocated: 95 % within | reserved: 95 % within | more than 1 % too low |
|---|--:|--:|--:|--:|--:|--:|
| first | 312 | 242 | 267 | | | 10 |
| second | 246 | 210 | 218 | 0.19 % | 1.1 % | 4 |
| third | 240 | 196 | 209 | 0.16 % | 5.1 % | 4 |
| fourth | 159 | 140 | 144 | 0.20 % | 2.2 % | 3 |

The worst of the first part, LoRA over 4-bit weights in a library's loop under bf16 autocast, was 44 % too low. In the other parts, the workloads that were more
than 1 % too low are ranks of DDP, and in the fourth one also a ResNet-34 in tf32 and channels_last. Half of the fourth part has sizes that no model of the
catalog has. The third part also has DDP in the loops of libraries, and adapters on several GPUs. Ten more of its workloads fail on the
card; they are refused now, with what to change. A fix for DDP in those loops was already under way: with it, before anybody looked at the results,
206 and 218 of the third part were exact. The figures in the first table include all fixes, so they are not of workloads that nobody has looked at.

Three things remain. A gradient scaler that meets an overflow skips steps, so the optimizer's memory comes later than predicted. NCCL may keep DDP's buckets
longer than either of the two ends that are predicted. And cuDNN's workspaces under reduced precision are not known for every size.
`

const docOthers = `
[benchmarks.md](benchmarks.md) compares PyTorch's own tracker on some of the same workloads.
`

func (f *figures) writeSummary(b *bytes.Buffer) {
	b.WriteString("\n## In short\n\n| what | measured | exact | median | 95 % within | from | to |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, line := range []struct {
		what string
		e    lineErrors
	}{{"peak allocated", f.allocated}, {"peak reserved", f.reserved}, {"peak allocated, held out", f.heldAllocated}, {"peak reserved, held out", f.heldReserved}, {"peak allocated, any keys", f.drawnAllocated}, {"peak reserved, any keys", f.drawnReserved}, {"peak allocated, memory study", f.studied.allocated}, {"peak reserved, memory study", f.studied.reserved}, {"largest batch", f.largest}, {"step time", f.time}, {"step time, memory study", f.studiedTime}, {"step time, large bf16 products", f.largeTime}} {
		e := line.e.sum()
		fmt.Fprintf(b, "| %s | %d | %d | %s | %s | %s | %s |\n", line.what, e.Cases, e.Exact,
			percent(e.Median), percent(e.Percentile95), signedPercent(e.Lowest), signedPercent(e.Highest))
	}
	fmt.Fprintf(b, "| every allocation and free, in order | %d processes | %d | | | | |\n", f.recorded+f.requests, f.recordedExact+f.requestsExact)
	b.WriteString(docDrawn)
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
	b.WriteString("\nThe workloads of `peaks.jsonl` were chosen, those of `peaks-random.jsonl` were drawn at random. Most have three steps, some two. The\nerror of a workload is the error of its worst step. `peaks-heldout.jsonl` was drawn at random and measured after the models were\nwritten, so nothing could be fitted to it. Two of its workloads are more than 3 % off in reserved memory, although allocated memory is\nexact; the reason is not known. TransformerLM is the plain language model of the memory study. Its workloads were also measured after\nthe model was written, and [study.md](study.md) lists them.\n")
}

func (f *figures) writeLargest(b *bytes.Buffer) {
	e := f.largest.sum()
	above := 0
	for _, x := range f.largest {
		if x.share > 0 {
			above++
		}
	}
	fmt.Fprintf(b, "\n## Largest batch\n\nThe largest batch that survives three full steps in a fresh process, on an H200 with a capped allocator\n"+
		"(`largest-batch.jsonl`): %d of %d are exact. Errors range from %s to %s; %d were predicted too high.\n", e.Exact, e.Cases,
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
	fmt.Fprintf(b, "\nA batch can fail although a larger one fits. Of %d batches tried on the GPU around %d such edges\n"+
		"(`edges.jsonl`), the simulation is right about %d.\n", tried, len(f.edges), tried-wrong)
}

func (f *figures) writeEvents(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n## Events\n\nFrom before the model is built to the end of the second step, every allocation and free is compared: its size, its memory\n"+
		"and its place in the order. All agree in %d of %d recorded processes (`recorded/`), and in %d of %d for which only the requests were\n"+
		"kept (`requests.jsonl.xz`). There is one exception: autocast frees its cached casts in the order of a hash map of CPU addresses, so these\n"+
		"are compared as a set. `memorymark snapshot compare` does the same for any two files.\n",
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
	b.WriteString("\nThe constants of the time model were fitted to kernels that were timed alone (`internal/steptime/testdata/kernels`), except what a launch\ntakes of the host: that is from the small batches of these steps (`throughput.jsonl`) and of the memory study, where Python is slower than the card.\n" +
		"\nWhat the host takes is not known better than that. The same model asks the host for the same in fp32 and in tf32, yet where it decides,\nsuch pairs of `throughput.jsonl` are up to 39 % apart; and other processes on such a card took 0.55 to 1.25 of what is estimated.\nSo the range of a step that waits for its host is wide.\n" +
		"\nThe range that comes with a time is to hold the truth in four of five cases. Steps, by engine:\n\n| card | steps | cases | median | 95 % within | in the range |\n|---|---|--:|--:|--:|--:|\n")
	writeSet(b, "h200", "`throughput.jsonl`, predicted", f.time)
	writeSet(b, "h200", "the memory study, predicted", f.studiedTime)
	writeSet(b, "h200", "large bf16 products (`throughput-large.jsonl`), predicted", f.largeTime)
	writeSet(b, "h200", "of another day (`steps.jsonl`), predicted", f.profiledTime)
	writeSet(b, "h200", "of `throughput.jsonl`, emulated", f.emulatedPlain)
	writeSet(b, "h200", "user-written models, emulated", f.emulatedOwn)
	writeSet(b, "a100-80gb", "of GPT in Megatron with data parallelism on 2 to 8 GPUs (`megatron.csv`), predicted", f.megatron)
	writeSet(b, "a100-80gb", "of GPT in Megatron's pipelines of 2 and 4 GPUs, predicted", f.pipelines)
	for _, card := range slices.Sorted(maps.Keys(f.cards)) {
		writeSet(b, card, "forward passes of image networks under autocast (`networks.csv`), predicted", f.cards[card])
	}
	b.WriteString("\nNothing was fitted to the large products, which are of Llamas as wide as those of 1, 8 and 70 billion parameters, to the steps of another day, to the user-written\nmodels and to Megatron. The rates of tensor cores of RTX cards were fitted to the forward passes, which others timed.\n" +
		"\nThe rates of links are of these all-gathers and reduce-scatters from 8 MiB on over NVLink (`collectives.csv`), and what cards reach is of these\nkernels of at least 200 µs (`products.csv`, `float32.jsonl`), whose convolutions are of odd sizes. A step has many kernels, so that it is nearer than each:\n\n" +
		"| card | set | cases | median | 95 % within | in the range |\n|---|---|--:|--:|--:|--:|\n")
	writeSet(b, "a100-80gb, h100, h200, b200", "collectives", f.collectives)
	for _, key := range slices.SortedFunc(maps.Keys(f.kernels), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		writeSet(b, key[0], key[1], f.kernels[key])
	}
	b.WriteString("\nOf other cards no times were found that may be compared with; `memorymark predict` says so with the range it gives.\n")
}

func writeSet(b *bytes.Buffer, card, set string, errors lineErrors) {
	e := errors.sum()
	fmt.Fprintf(b, "| %s | %s | %d | %s | %s | %.0f %% |\n", card, set, e.Cases, percent(e.Median), percent(e.Percentile95), 100*errors.held())
}

const docReasons = `
* **Ties.** PyTorch takes the smallest free block that is large enough. Among blocks of the same size it takes the one with the lowest
  address. The addresses come from the driver, whose source is closed; they are modelled on its observed behaviour. So the
  simulation may take the other of two equal blocks. Then a different remainder is left: up to 1 MiB stays with the block and
  counts as allocated. Reserved memory, and with it the largest batch, can differ by whole segments.
* **Convolutions.** cuDNN chooses its algorithm, and so its workspace, by closed heuristics. MemoryMark has a table of 181,411
  measured convolutions (` + "`operators/cudnn_convolutions.csv.xz`" + `); for any other, the nearest entries vote. A wrong workspace shifts
  the peaks of ResNet, and of ViT, whose patch embedding is a convolution.
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
## How it was measured

On one NVIDIA H200 (139.8 GiB) with driver 580, PyTorch 2.11.0+cu130 (cuDNN 9.19), transformers 5.17.0 and Python 3.12. Each workload
ran in a fresh process. Amounts are the allocator's own statistics. The largest batches were found under
` + "`set_per_process_memory_fraction`" + `. The measurements are in ` + "`testdata/truth`" + `. Two runs of a workload give the same
bytes. To run the predictions again and rewrite this page:

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
