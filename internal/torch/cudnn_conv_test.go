package torch

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"strconv"
	"testing"
)

// TestConvWorkspace holds the table to measurements that it was made from, and
// the guess for what is not in it to ones that it was not.
func TestConvWorkspace(t *testing.T) {
	table := tableOf(Device{Major: 9})
	for _, c := range []struct {
		shape     convShape
		batch     int64
		direction convDirection
		want      int64
	}{
		{convShape{"bf16", 64, 56, 64, 3, 1, 1, false}, 16, convForward, 12918800},
		{convShape{"tf32", 64, 56, 64, 3, 1, 1, false}, 16, convInputGrad, 25837584},
		{convShape{"bf16", 64, 56, 64, 3, 1, 1, false}, 16, convWeightGrad, 14836391},
		{convShape{"fp32", 64, 56, 64, 3, 1, 1, false}, 16, convInputGrad, 35651584},
		{convShape{"bf16", 64, 56, 64, 3, 1, 1, false}, 10, convForward, 8102035},
		{convShape{"bf16", 384, 3000, 384, 3, 2, 1, true}, 4, convForward, 14708752},
	} {
		if got := table.workspace(c.shape, c.batch, c.direction); got != c.want {
			t.Errorf("%v of %d, direction %d: %d bytes, want %d", c.shape, c.batch, c.direction, got, c.want)
		}
	}
	// An image of 60 pixels was not measured; one of 56 is computed from
	// channels-last copies of all three tensors, and so should this be.
	copies := convShape{"bf16", 64, 60, 64, 3, 1, 1, false}.copies(16)
	if got, want := table.workspace(convShape{"bf16", 64, 60, 64, 3, 1, 1, false}, 16, convForward), copies[0]+copies[1]+copies[2]; got < want || got > want+256 {
		t.Errorf("a convolution that was not measured: %d bytes, want about %d", got, want)
	}
}

// tableOf is the table of a card in PyTorch 2.11.
func tableOf(d Device) convTable { return cudnn919.table(cudnn919.tableIndex(d)) }

// TestConvReleases takes the table of the cuDNN that a PyTorch comes with.
func TestConvReleases(t *testing.T) {
	patches := convShape{"bf16", 3, 224, 768, 16, 16, 0, false} // of a ViT
	for version, want := range map[Version]int64{{2, 8}: 3072, {2, 11}: 4249616 + 7*1103872, {2, 15}: 4249616 + 7*1103872} {
		cudnn := (&Torch{Version: version}).cudnn()
		if got := cudnn.table(cudnn.tableIndex(Device{Major: 9})).workspace(patches, 8, convForward); got != want {
			t.Errorf("PyTorch %v: %d bytes forward, want %d", version, got, want)
		}
	}
}

// TestConvCapabilities takes each card's own table, and has one for all of them.
func TestConvCapabilities(t *testing.T) {
	same := func(a, b Device) bool {
		patches := convShape{"fp16", 3, 224, 768, 16, 16, 0, false}
		return tableOf(a).workspace(patches, 64, convWeightGrad) == tableOf(b).workspace(patches, 64, convWeightGrad)
	}
	for name, load := range convTables {
		if len(load()) == 0 {
			t.Errorf("the table %s is empty", name)
		}
	}
	if t4, a100 := (Device{Major: 7, Minor: 5}), (Device{Major: 8}); same(t4, a100) {
		t.Error("a T4 and an A100 have the same table")
	}
	for _, pair := range [][2]Device{
		{{Major: 7}, {Major: 7, Minor: 5}}, {{Major: 8, Minor: 7}, {Major: 8, Minor: 6}}, {{Major: 10, Minor: 3}, {Major: 10}}, {{}, {Major: 9}},
	} {
		if !same(pair[0], pair[1]) {
			t.Errorf("%+v and %+v have different tables", pair[0], pair[1])
		}
	}
}

// TestPlannedConvolutions holds the table of an L40S to what cuDNN 9.19 plans for
// it (scripts/cudnn_workspaces.py --cases): ResNets' convolutions of images of 128
// and 320 pixels, at batches that the table has for fp32 and not for bf16.
func TestPlannedConvolutions(t *testing.T) {
	file, err := os.Open("testdata/planned_8.9.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(unzipped).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	table := tableOf(Device{Major: 8, Minor: 9})
	var all, right, planned, predicted int64
	for _, row := range rows {
		var n [11]int64 // batch, channels, height, width, filters, side, stride, padding, and what each direction takes
		for i := range n {
			if n[i], err = strconv.ParseInt(row[i+1], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		for d, want := range n[8:] {
			if want < 0 {
				continue
			}
			got := table.workspace(convShape{dtype: row[0], c: n[1], h: n[2], k: n[4], r: n[5], stride: n[6], pad: n[7]}, n[0], convDirection(d))
			all, planned, predicted = all+1, planned+want, predicted+got
			if max(got-want, want-got) < 512 {
				right++
			}
		}
	}
	// With images of 224 pixels alone in the table it was 72 % of them, and 67 %
	// of the bytes.
	if float64(right) < 0.92*float64(all) || float64(max(planned-predicted, predicted-planned)) > 0.02*float64(planned) {
		t.Errorf("%d of %d are right to a block, and %d of %d bytes in all", right, all, predicted, planned)
	}
}

// TestDepthwiseWorkspaces takes those of the card's capability where they were asked
// for, and an H200's where they were not.
func TestDepthwiseWorkspaces(t *testing.T) {
	h200, ada := tableOf(Device{Major: 9}), tableOf(Device{Major: 8, Minor: 9})
	last := convShape{"bf16/last/each", 768, 7, 768, 7, 1, 3, false} // of a ConvNeXt's stages
	if got := h200.workspace(last, 4, convWeightGrad); got != 0 {
		t.Errorf("on an H200: %d bytes", got)
	}
	if got := ada.workspace(last, 4, convWeightGrad); got != 8*4*768*7*7*4 { // eight sums a sample, in float32
		t.Errorf("on an RTX 4090: %d bytes", got)
	}
	if !ada.has("bf16/last/each") || !ada.has("fp16/last/each") || ada.has("tf32/last/each") || !h200.has("tf32/last/each") {
		t.Error("the tables have other types than were asked for")
	}
}
