package torch

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"testing"
)

// TestPersistentNorm holds the workspaces of batch normalization in channels_last
// to what cuDNN answered on an H200.
func TestPersistentNorm(t *testing.T) {
	file, err := os.Open("../emulate/testdata/bn.txt.gz") // its README says what a row has
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]DType{"fp32": Float32, "fp16": Float16, "bf16": BFloat16}
	seen := 0
	for lines := bufio.NewScanner(rows); lines.Scan(); {
		var dtype string
		var last, mode, n, c, size, forward, backward, status, backwardStatus int64
		if _, err := fmt.Sscanf(lines.Text(), "%s %d %d %d %d %d | %d %d %d %d",
			&dtype, &last, &mode, &n, &c, &size, &status, &forward, &backwardStatus, &backward); err != nil {
			t.Fatal(err)
		}
		const persistent = 2 // CUDNN_BATCHNORM_SPATIAL_PERSISTENT
		if last == 0 || mode != persistent {
			continue
		}
		seen++
		in := &Tensor{Shape: []int64{n, c, size, size}, DType: types[dtype]}
		if f, b := persistentNormForward(in), persistentNormBackward(in); f != forward || b != backward {
			t.Errorf("%s: %d and %d bytes", lines.Text(), f, b)
		}
	}
	if seen < 2000 {
		t.Errorf("%d rows", seen)
	}
}
