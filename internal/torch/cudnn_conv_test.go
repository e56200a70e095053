package torch

import "testing"

// TestConvWorkspace holds the table to measurements that it was made from, and
// the guess for what is not in it to ones that it was not.
func TestConvWorkspace(t *testing.T) {
	table := loadConvTable(capability{9, 0})
	for _, c := range []struct {
		shape     convShape
		batch     int64
		direction convDirection
		want      int64
	}{
		{convShape{"bf16", 64, 56, 64, 3, 1, 1}, 16, convForward, 12918800},
		{convShape{"tf32", 64, 56, 64, 3, 1, 1}, 16, convInputGrad, 25837584},
		{convShape{"bf16", 64, 56, 64, 3, 1, 1}, 16, convWeightGrad, 14836391},
		{convShape{"fp32", 64, 56, 64, 3, 1, 1}, 16, convInputGrad, 35651584},
		{convShape{"bf16", 64, 56, 64, 3, 1, 1}, 10, convForward, 8102035},
	} {
		if got := table.workspace(c.shape, c.batch, c.direction); got != c.want {
			t.Errorf("%v of %d, direction %d: %d bytes, want %d", c.shape, c.batch, c.direction, got, c.want)
		}
	}
	// An image of 60 pixels was not measured; one of 56 is computed from
	// channels-last copies of all three tensors, and so should this be.
	copies := convShape{"bf16", 64, 60, 64, 3, 1, 1}.copies(16)
	if got, want := table.workspace(convShape{"bf16", 64, 60, 64, 3, 1, 1}, 16, convForward), copies[0]+copies[1]+copies[2]; got < want || got > want+256 {
		t.Errorf("a convolution that was not measured: %d bytes, want about %d", got, want)
	}
}
