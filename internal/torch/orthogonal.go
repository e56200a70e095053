package torch

// FillOrthogonal is nn.init.orthogonal_(x): the Q of a matrix of random numbers, whose signs
// are those of R's diagonal. The areas are what cuSOLVER was seen to ask for
// (internal/emulate/library/solver.c; aten/src/ATen/native/BatchLinearAlgebra.cpp, linalg_qr_out).
func (t *Torch) FillOrthogonal(x X) {
	in := read(x)
	rows := in.Shape[0]
	columns := product(in.Shape[1:])
	high, low := max(rows, columns), min(rows, columns)
	drawn := t.empty(in.DType, rows, columns)
	q, r, scales := t.empty(in.DType, high, low), t.empty(in.DType, low, low), t.empty(in.DType, low)
	for _, area := range []int64{areaOfQR(low), areaOfQ(high, low)} {
		status := t.empty(Int32)
		t.release(t.empty(in.DType, area), status)
	}
	t.release(scales)
	diagonal, signs := t.empty(in.DType, low), t.empty(in.DType, low)
	t.release(drawn, q, r, diagonal, signs)
	t.done(x)
}

// areaOfQR is what geqrf needs, in elements.
func areaOfQR(n int64) int64 { return 524288 + 1024*max(n, 256) + 32 }

// areaOfQ is what orgqr needs for a Q of these sides.
func areaOfQ(rows, columns int64) int64 {
	if columns <= 64 {
		return 32768 + 256 + (rows*columns+31)/32*32
	}
	return 32768 + 256 + rows*min(columns, 192) + columns*min(max(columns-192, 0), 176)
}
