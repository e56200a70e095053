package bytesize

import "testing"

func TestParse(t *testing.T) {
	for in, want := range map[string]Bytes{
		"0": 0, "512": 512, "1KiB": 1024, "1.5 MiB": 3 * MiB / 2, "24GiB": 24 * GiB,
		"20mb": 20 * MiB, "2G": 2 * GiB, " 3 tib ": 3 * TiB, "22.1GiB": 23729694310,
	} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "GiB", "-1", "12 parsecs", "1e30", "NaN", "0x10"} {
		if got, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %d; want an error", in, got)
		}
	}
}

func TestString(t *testing.T) {
	for in, want := range map[Bytes]string{
		0: "0 B", 1023: "1023 B", KiB: "1.00 KiB", 20 * MiB: "20.00 MiB",
		-3 * GiB / 2: "-1.50 GiB", 2 * TiB: "2.00 TiB",
	} {
		if got := in.String(); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", int64(in), got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("24GiB")
	f.Add("1.5 mb")
	f.Fuzz(func(t *testing.T, s string) {
		if b, err := Parse(s); err == nil && b < 0 {
			t.Errorf("Parse(%q) = %d", s, b)
		}
	})
}
