package torch

import (
	"cmp"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"memorymark/internal/trace"
)

// This file is the workspace of cuDNN's convolutions. Which kernel computes one, and with it the
// workspace, is decided by heuristics in a closed library (cudnn/Conv_v8.cpp asks it for a list and
// takes the first that runs), so the sizes of ResNets, ViTs and Whisper are in tables (cudnn_conv),
// one for each compute capability: measured on an H200; for other cards and for channels_last,
// queried from the same heuristics on emulated cards, which answer by capability. Images have the
// usual sides of training, from 32 to 512 pixels; small channels and sides were queried in float32
// alone, for every card. A convolution that is not in a table is assumed
// to be computed like the most similar ones. With a kernel for each channel, float32 needs no
// workspace on any card that was queried. Half precision was queried for an A100, an RTX 3060 and
// an RTX 4090; everything else was measured on an H200 only.

// convDirection is which result of a convolution is computed.
type convDirection int

const (
	convForward convDirection = iota
	convInputGrad
	convWeightGrad
)

// convShape is a convolution of square images, or along one dimension, whatever
// the batch.
type convShape struct {
	dtype                   string // of a table: float32 is fp32 or tf32; channels_last has its own
	c, h, k, r, stride, pad int64
	oneD                    bool // along one dimension, of size h
}

// area is the number of pixels of an image whose side has this many.
func (s convShape) area(side int64) int64 {
	if s.oneD {
		return side
	}
	return side * side
}

// out is the number of pixels of the result.
func (s convShape) out() int64 { return s.area(windowOut(s.h, s.r, s.stride, s.pad)) }

// convLine says that from a batch on, a workspace is a straight line.
type convLine struct{ from, bytes, slope int64 }

// convTable holds the lines of each convolution by direction.
type convTable map[convShape][3][]convLine

// These suffixes mark the types of images in channels_last, and of depthwise
// convolutions.
const (
	channelsLast = "/last"
	eachChannel  = "/each"
)

//go:embed cudnn_conv/*.txt.gz cudnn_conv/2.8/*.txt.gz
var convFiles embed.FS

// convRelease is a cuDNN that a PyTorch ships with.
type convRelease struct {
	folder       string       // of its tables
	capabilities []capability // those that have one, in order
}

// The releases: cuDNN 9.19 of PyTorch 2.11, and 9.10 of 2.8, which was only queried
// for the convolutions of ViTs. Earlier ones plan nothing without a card.
var (
	cudnn919 = convRelease{"cudnn_conv", []capability{{7, 5}, {8, 0}, {8, 6}, {8, 9}, {9, 0}, {10, 0}, {12, 0}}}
	cudnn910 = convRelease{"cudnn_conv/2.8", []capability{{7, 5}, {8, 0}, {8, 6}, {8, 9}, {9, 0}, {12, 0}}} // it fails for a B200
)

// cudnn is the release of a PyTorch.
func (t *Torch) cudnn() convRelease {
	if t.Version.Before(2, 11) {
		return cudnn910
	}
	return cudnn919
}

type capability struct{ major, minor int }

func (c capability) compare(o capability) int {
	return cmp.Or(cmp.Compare(c.major, o.major), cmp.Compare(c.minor, o.minor))
}

// convTables holds the tables by the names of their files.
var convTables = func() map[string]func() convTable {
	tables := make(map[string]func() convTable)
	for _, r := range []convRelease{cudnn919, cudnn910} {
		for _, c := range r.capabilities {
			name := r.file(c)
			tables[name] = sync.OnceValue(func() convTable { return loadConvTable(name) })
		}
	}
	return tables
}()

func (r convRelease) file(c capability) string {
	return fmt.Sprintf("%s/%d.%d.txt.gz", r.folder, c.major, c.minor)
}

// table returns the table of a capability by its index.
func (r convRelease) table(place int64) convTable { return convTables[r.file(r.capabilities[place])]() }

func loadConvTable(name string) convTable {
	text, err := readConvFile(name)
	var table convTable
	if err == nil {
		table, err = parseConvTable(text)
	}
	if err != nil {
		panic("torch: " + name + ": " + err.Error()) // it is part of the program
	}
	return table
}

func readConvFile(name string) (string, error) {
	file, err := convFiles.Open(name)
	if err != nil {
		return "", err
	}
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(unzipped)
	return string(text), err
}

// tableIndex returns the index of the card's compute capability among those that have a
// table, or of the next below it. Before 7.5, for which PyTorch 2.11's cuDNN plans
// nothing, it is that of 7.5. A card of unknown capability counts as an H200.
func (r convRelease) tableIndex(d Device) int64 {
	of := capability{d.Major, d.Minor}
	if of.major == 0 {
		of = capability{9, 0}
	}
	best := 0
	for i, c := range r.capabilities {
		if c.compare(of) <= 0 {
			best = i
		}
	}
	return int64(best)
}

// parseConvTable reads the table; scripts/cudnn_table.py says what is in it.
func parseConvTable(text string) (convTable, error) {
	table := convTable{}
	for row := range strings.Lines(text) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		fields := strings.Fields(row)
		if len(fields) != 10 {
			return nil, fmt.Errorf("%d fields in %.60q", len(fields), row)
		}
		s := convShape{dtype: fields[0]}
		fields[2], s.oneD = strings.CutPrefix(fields[2], "1x")
		for i, value := range []*int64{&s.c, &s.h, &s.k, &s.r, &s.stride, &s.pad} {
			n, err := strconv.ParseInt(fields[1+i], 10, 64)
			if err != nil {
				return nil, err
			}
			*value = n
		}
		var lines [3][]convLine
		for d := range lines {
			var err error
			if lines[d], err = parseConvLines(fields[7+d]); err != nil {
				return nil, err
			}
		}
		table[s] = lines
	}
	return table, nil
}

func parseConvLines(column string) ([]convLine, error) {
	if column == "-" {
		return nil, nil // never needed: pixels have no gradient
	}
	var lines []convLine
	for part := range strings.SplitSeq(column, ",") {
		from, value, _ := strings.Cut(part, ":")
		bytes, slope := value, "0"
		if i := strings.IndexAny(value, "+-"); i > 0 {
			bytes, slope = value[:i], value[i:]
		}
		var l convLine
		var errs [3]error
		l.from, errs[0] = strconv.ParseInt(from, 10, 64)
		l.bytes, errs[1] = strconv.ParseInt(bytes, 10, 64)
		l.slope, errs[2] = strconv.ParseInt(slope, 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// convWorkspace allocates cuDNN's workspace for the duration of the call. Depthwise
// convolutions of images that are not in channels_last use PyTorch's own kernel,
// which needs none (Convolution.cpp, use_cudnn_depthwise).
func (t *Torch) convWorkspace(in *Tensor, m *Conv2d, d convDirection) {
	layout, last := "", m.inChannelsLast(in)
	switch {
	case m.depthwise && !last:
		return
	case m.depthwise:
		layout = channelsLast + eachChannel
	case last:
		layout = channelsLast
	}
	t.workspaceOf(in, convShape{
		c: in.Shape[1], h: in.Shape[2], k: m.Weight.Shape[0], r: m.Weight.Shape[2], stride: m.Stride, pad: m.Padding,
	}, layout, d)
}

func (t *Torch) workspaceOf(in *Tensor, s convShape, layout string, d convDirection) {
	switch {
	case in.DType == BFloat16:
		s.dtype = "bf16"
	case in.DType == Float16:
		s.dtype = "fp16"
	case t.TF32 && t.is(func(d Device) bool { return d.Major == 0 || d.isAmpere() }): // earlier tensor cores do not take float32
		s.dtype = "tf32"
	default:
		s.dtype = "fp32"
	}
	s.dtype += layout
	cudnn := t.cudnn()
	table := cudnn.table(t.ask(cudnn.tableIndex))
	if strings.HasSuffix(layout, eachChannel) && !table.has(s.dtype) {
		table = cudnn.table(cudnn.tableIndex(Device{Major: 9}))
	}
	if t.NoWildGuesses && !table.knowsLike(s, d) {
		t.unknownWorkspace("%s, %d channels of %d, window %d, stride %d", s.dtype, s.c, s.h, s.r, s.stride)
	}
	bytes := table.workspace(s, in.Shape[0], d)
	t.As(trace.Workspace, func() { t.drop(t.allocate(bytes)) })
}

// unknownWorkspace ends a process in a convolution.
func (t *Torch) unknownWorkspace(format string, args ...any) {
	panic(Interruption{fmt.Errorf("the workspace of the convolution %s is not known: %s", t.module.path, fmt.Sprintf(format, args...))})
}

// has reports whether the table has convolutions of a type, or of the type that represents
// it.
func (table convTable) has(dtype string) bool {
	rest, half := strings.CutPrefix(dtype, "fp16")
	for s := range table {
		if s.dtype == dtype || half && s.dtype == "bf16"+rest {
			return true
		}
	}
	return false
}

// lines are what was measured of a convolution, nil if nothing was.
func (table convTable) lines(s convShape, d convDirection) []convLine {
	lines := table[s][d]
	if rest, half := strings.CutPrefix(s.dtype, "fp16"); half && lines == nil { // planned as bf16, mostly
		s.dtype = "bf16" + rest
		lines = table[s][d]
	}
	return lines
}

// knowsLike reports whether a convolution of the same window and stride was measured, or one
// of patches where it is of patches.
func (table convTable) knowsLike(s convShape, d convDirection) bool {
	if table.lines(s, d) != nil {
		return true
	}
	for o, lines := range table {
		if lines[d] != nil && o.dtype == s.dtype && o.oneD == s.oneD && (o.r == s.r && o.stride == s.stride || o.patches() && s.patches()) {
			return true
		}
	}
	return false
}

func (table convTable) workspace(s convShape, batch int64, d convDirection) int64 {
	if lines := table.lines(s, d); lines != nil {
		return at(lines, batch)
	}
	var guesses []int64 // the middle one is taken
	for _, near := range table.nearest(s, d) {
		// Heuristics depend on the amount of computation.
		places := batch * s.out()
		nearBatch := max(1, (places+near.out()/2)/near.out())
		guesses = append(guesses, carryOver(at(table[near][d], nearBatch), near, nearBatch, s, batch))
	}
	if len(guesses) == 0 {
		return 0
	}
	slices.Sort(guesses)
	return guesses[len(guesses)/2]
}

// at is the workspace of a batch.
func at(lines []convLine, batch int64) int64 {
	i, exact := slices.BinarySearchFunc(lines, batch, func(l convLine, n int64) int { return cmp.Compare(l.from, n) })
	if !exact {
		i = max(i-1, 0)
	}
	return max(0, lines[i].bytes+lines[i].slope*(batch-lines[i].from))
}

// nearest are the measured convolutions that are most like another. Five of
// them outvote one at the edge of a heuristic: with one image size left out of
// the table, five predict its ResNets best.
func (table convTable) nearest(s convShape, d convDirection) []convShape {
	const count = 5
	var found []convShape
	distances := make(map[convShape]float64)
	for o, lines := range table {
		if o.dtype == s.dtype && o.oneD == s.oneD && lines[d] != nil {
			found = append(found, o)
			distances[o] = s.distance(o)
		}
	}
	slices.SortFunc(found, func(a, b convShape) int {
		// Break ties, so that the order of the map does not matter.
		return cmp.Or(cmp.Compare(distances[a], distances[b]), slices.Compare(a.fields(), b.fields()))
	})
	return found[:min(count, len(found))]
}

// distance says how unlike two convolutions are, in doublings; another kernel
// size or stride is worse than other sizes of the tensors.
func (s convShape) distance(o convShape) float64 {
	doublings := func(a, b int64) float64 { return math.Abs(math.Log2(float64(a) / float64(b))) }
	return doublings(s.c, o.c) + doublings(s.k, o.k) + doublings(s.h, o.h) + 4*doublings(s.r, o.r) + 4*doublings(s.stride, o.stride)
}

func (s convShape) fields() []int64 { return []int64{s.c, s.h, s.k, s.r, s.stride, s.pad} }

// patches reports whether windows neither overlap nor leave anything out.
func (s convShape) patches() bool { return s.r == s.stride && s.r > 1 }

// copies returns the bytes of image, result and weight in channels-last order,
// which tensor-core kernels need: channels are padded to 16 bytes.
func (s convShape) copies(batch int64) [3]int64 {
	size := int64(4)
	if strings.Contains(s.dtype, "16") {
		size = 2
	}
	channels := divUp(s.c*size, 16) * 16
	return [3]int64{batch * channels * s.area(s.h), batch * s.k * s.out() * size, s.k * channels * s.area(s.r)}
}

// carryOver finds the copies that a workspace consists of and adds up those of
// another convolution, plus the rest. A workspace that is not made of copies
// scales with the tensors.
func carryOver(bytes int64, from convShape, fromBatch int64, to convShape, batch int64) int64 {
	a, b := from.copies(fromBatch), to.copies(batch)
	rest, sum := bytes, int64(0)
	for choice := 1; choice < 8; choice++ {
		left, total := bytes, int64(0)
		for i := range a {
			if choice>>i&1 == 1 {
				left -= a[i]
				total += b[i]
			}
		}
		if left >= 0 && left < rest {
			rest, sum = left, total
		}
	}
	if sum > 0 && rest*4 < bytes {
		return sum + rest
	}
	return int64(float64(bytes) * float64(b[0]+b[1]+b[2]) / float64(a[0]+a[1]+a[2]))
}
