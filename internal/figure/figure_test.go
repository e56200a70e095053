package figure

import "testing"

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		Count(0): "0", Count(999): "999", Count(118980): "118,980", Count(-1234): "-1,234",
		Elapsed(0): "0", Elapsed(250): "250 µs", Elapsed(1500): "1.5 ms", Elapsed(1_250_000): "1.25 s",
		About(517_329): "517 ms", About(999): "999 µs", About(1_339_491): "1.34 s",
		Short(0.5): "0.5", Short(2): "2", Short(1.0 / 3): "0.333333",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
