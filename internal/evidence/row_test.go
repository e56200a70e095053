package evidence

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	rows := []Row{
		{Comparison: "peak allocated, reported", Recording: "gpt2_b8", Source: "reported", Card: "t4", PyTorch: "2.11", Transformers: "5.17", Parameters: 124, SignedError: -0.0125},
		{Comparison: `step "time"`, Card: "t4", SignedError: 1.5},
	}
	var b bytes.Buffer
	if err := WriteRows(&b, rows); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRows(&b); err != nil || !slices.Equal(got, rows) {
		t.Errorf("read %v, %v; want %v", got, err, rows)
	}
	for _, bad := range []string{"", "a,b\n", strings.Join(rowColumns, ",") + "\na,b,c,d,e,f,many,0\n", strings.Join(rowColumns, ",") + "\na,b,c,d,e,f,1,far\n"} {
		if rows, err := ReadRows(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, rows)
		}
	}
}

func TestRelease(t *testing.T) {
	for version, want := range map[string]string{"2.11.0+cu130": "2.11", "5.17": "5.17", "3": "3", "": ""} {
		if got := Release(version); got != want {
			t.Errorf("of %q: %q, want %q", version, got, want)
		}
	}
}
