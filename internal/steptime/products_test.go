package steptime

import (
	"bufio"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"memorymark/internal/gpu"
)

// measuredProduct is a matrix product that others timed on several cards.
type measuredProduct struct {
	m, n, k float64
	seconds []float64 // by card
}

// readProducts reads the sizes that keep a card computing.
func readProducts(t *testing.T) (out []measuredProduct) {
	t.Helper()
	f, err := os.Open("testdata/kernels/products.csv.xz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unpacked, err := xz.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(unpacked); lines.Scan(); {
		var row []float64
		for _, field := range strings.Split(lines.Text(), ",") {
			x, err := strconv.ParseFloat(field, 64)
			if err != nil {
				break
			}
			row = append(row, x)
		}
		if len(row) == 9 && row[0]*row[1]*row[2] >= 4e9 {
			out = append(out, measuredProduct{row[0], row[1], row[2], row[3:]})
		}
	}
	return out
}

// TestHalfRates compares what cards.csv says of half types with these products.
func TestHalfRates(t *testing.T) {
	products := readProducts(t)
	for i, id := range []string{"h200", "h100", "a100-80gb", "l40s", "rtx-pro-6000", "b200"} {
		card, err := gpu.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		d := newDevice(card)
		var shares []float64
		for _, p := range products {
			shares = append(shares, d.seconds(&Launch{Kind: Product, Type: BF16, Size: [maxSizes]float64{p.m, p.n, p.k}})/(p.seconds[i]*1e-6))
		}
		slices.Sort(shares)
		median := shares[len(shares)/2]
		t.Logf("%s: %d products, estimated %.3f of what they took in the median; %.3f to %.3f in four of five; half %.3f", id, len(shares), median, shares[len(shares)/10], shares[len(shares)*9/10], d.reached.half*median)
		_ = math.Abs
	}
}
